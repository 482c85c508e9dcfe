"""A machine that forbids user namespaces is told apart by its settings, and its administrator told what to type."""

from pathlib import Path

import pytest

from core.errors import InfraError
from core.sandbox import obstacles, probe, service
from core.sandbox.backends import NAMESPACES
from core.sandbox.obstacles import namespace_obstacle
from core.sandbox.policy import Command, Policy, SandboxUnavailable
from core.sandbox.service import open_sandbox


@pytest.fixture
def ordinary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(obstacles.os, "geteuid", lambda: 1000)


@pytest.mark.usefixtures("ordinary")
@pytest.mark.parametrize(
    ("setting", "value", "fix"),
    [
        ("user/max_user_namespaces", "0", "user.max_user_namespaces=15000"),
        ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"),
    ],
)
def test_forbidding_setting_is_named_with_its_remedy(tmp_path: Path, setting: str, value: str, fix: str) -> None:
    assert namespace_obstacle(tmp_path) is None
    (tmp_path / setting).parent.mkdir()
    (tmp_path / setting).write_text(value + "\n")
    found = namespace_obstacle(tmp_path)
    assert found is not None
    assert setting.replace("/", ".") in found.reason
    assert fix in found.fix
    assert ("apparmor_parser -r /etc/apparmor.d/bwrap" in found.fix) == ("apparmor" in setting)


def test_root_needs_no_user_namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(obstacles.os, "geteuid", lambda: 0)
    (tmp_path / "user").mkdir()
    (tmp_path / "user/max_user_namespaces").write_text("0")
    assert namespace_obstacle(tmp_path) is None


def test_error_says_what_the_trial_met(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object) -> None:
        raise InfraError("unshare: Operation not permitted")

    monkeypatch.setenv("COMPLAB_CACHE", str(tmp_path))
    monkeypatch.setattr(probe, "_known", {})
    monkeypatch.setattr(probe, "_trial", refuse)
    with pytest.raises(SandboxUnavailable, match="unshare: Operation not permitted"):
        open_sandbox(backend="namespaces").run(Command(argv=("true",)), Policy())
    assert service.report(NAMESPACES, "toolchain").problem
    assert not list(tmp_path.rglob("*.json")), "a failure that can be mended any moment is not remembered"
