"""No sandbox with the required guarantees means an error with a hint, and unsafe only when it is said twice."""

import shutil
from pathlib import Path

import pytest

from core.errors import InfraError
from core.sandbox import probe, service, supervisor
from core.sandbox.backends import BUBBLEWRAP, CONFINING, NAMESPACES
from core.sandbox.execution import Tree
from core.sandbox.policy import Command, Guarantee, Policy, SandboxUnavailable
from core.sandbox.probe import Trial, judge
from core.sandbox.service import Box, open_sandbox


@pytest.fixture
def nothing_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "proven", lambda backend, profile: frozenset({Guarantee.WALL}))


@pytest.mark.usefixtures("nothing_proven")
def test_no_backend_is_an_error_that_names_what_to_install() -> None:
    with pytest.raises(SandboxUnavailable, match="apt-get install bubblewrap") as caught:
        open_sandbox().run(Command(argv=("true",)), Policy())
    assert "no_net" in str(caught.value)


@pytest.mark.usefixtures("nothing_proven")
def test_weaker_policy_is_served_by_what_is_proven() -> None:
    backend, guarantees = Box().choose(Policy(required=frozenset({Guarantee.WALL})))
    assert backend is CONFINING[0]
    assert guarantees == frozenset({Guarantee.WALL})


@pytest.mark.usefixtures("nothing_proven")
@pytest.mark.parametrize(("flag", "variable"), [(True, None), (False, "1"), (True, "0")])
def test_unsafe_needs_flag_and_variable(monkeypatch: pytest.MonkeyPatch, flag: bool, variable: str | None) -> None:
    monkeypatch.delenv("COMPLAB_UNSAFE_SANDBOX", raising=False)
    if variable is not None:
        monkeypatch.setenv("COMPLAB_UNSAFE_SANDBOX", variable)
    with pytest.raises(SandboxUnavailable):
        open_sandbox(allow_unsafe=flag).run(Command(argv=("true",)), Policy())


@pytest.mark.usefixtures("nothing_proven")
def test_unsafe_says_so_everywhere(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COMPLAB_UNSAFE_SANDBOX", "1")
    result = open_sandbox(allow_unsafe=True).run(
        Command(argv=("sh", "-c", "cat in >out"), files={"in": b"x"}, outputs=("out",)), Policy()
    )
    assert result.files == {"out": b"x"}
    assert (result.backend, result.guarantees) == ("unsafe", frozenset())
    assert "UNSAFE" in capsys.readouterr().err


def test_unsafe_is_not_used_where_a_sandbox_covers_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPLAB_UNSAFE_SANDBOX", "1")
    monkeypatch.setattr(service, "proven", lambda backend, profile: frozenset(Guarantee))
    assert Box(allow_unsafe=True).choose(Policy())[0] is CONFINING[0]


def only(folder: Path, *tools: str) -> dict[str, str]:
    """Return an environment in which the trusted stages find these tools alone."""
    for tool in tools:
        found = shutil.which(tool)
        assert found is not None
        (folder / tool).symlink_to(found)
    return {"PATH": str(folder), "LANG": "C.UTF-8"}


def test_machine_without_bubblewrap_falls_back_to_own_namespaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_ENV", only(tmp_path, "setpriv", "prlimit"))
    monkeypatch.setattr(probe, "_known", {})
    monkeypatch.setenv("COMPLAB_CACHE", str(tmp_path / "cache"))
    policy = Policy(profile="pure", required=frozenset({Guarantee.NO_NET, Guarantee.FS_CONFINED}))
    assert Box().choose(policy)[0] is NAMESPACES
    assert "bwrap" in probe.report(BUBBLEWRAP, "pure").problem
    assert Box().run(Command(argv=("/bin/true",)), policy).ok


def test_missing_tool_of_every_backend_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_ENV", only(tmp_path))
    with pytest.raises(InfraError, match="setpriv"):
        Tree(NAMESPACES, Command(argv=("/bin/true",)), Policy(), frozenset())


def trial(guarantee: Guarantee, *, held: bool, control: bool | None) -> Trial:
    return Trial(probe="p", what="", guarantee=guarantee, outside="", control=control, inside="", held=held)


def test_guarantee_needs_every_probe_held_and_one_that_could_fail() -> None:
    net = Guarantee.NO_NET
    assert judge((trial(net, held=True, control=True), trial(net, held=True, control=None))) == {net}
    assert judge((trial(net, held=True, control=True), trial(net, held=False, control=True))) == frozenset()
    assert judge((trial(net, held=True, control=False),)) == frozenset()
    assert judge((trial(net, held=True, control=None),)) == frozenset()
    assert judge(()) == frozenset()
