"""Every probe of core/sandbox/probes gets out of nothing that we call a sandbox, and gets out where there is none."""

import os

import pytest

from core.sandbox.backends import BUBBLEWRAP, CONFINING, NAMESPACES, Backend
from core.sandbox.escapes import Probe, catalogue, not_applicable, try_inside, try_outside
from core.sandbox.policy import Guarantee, Profile
from core.sandbox.probe import proven

CASES = [
    # The fallback's full suite is in the second tier; the few probes that decide run for every backend always.
    pytest.param(
        backend,
        profile,
        probe,
        id=f"{backend.name}-{profile}-{probe.name}",
        marks=[pytest.mark.slow] if backend is NAMESPACES and not probe.core else [],
    )
    for backend in CONFINING
    for profile in backend.profiles
    for probe in catalogue()
    if not not_applicable(probe, backend, profile)
]
OUTSIDE = [probe for probe in catalogue() if not probe.only_inside]


@pytest.mark.parametrize(("backend", "profile", "probe"), CASES)
def test_probe_is_held(backend: Backend, profile: Profile, probe: Probe) -> None:
    if probe.guarantee not in proven(backend, profile):
        # Not promised here, so no policy that needs it is run by this backend; that it is refused is tested elsewhere.
        assert weaker_by_design(backend, profile, probe.guarantee)
        return
    attempt = try_inside(probe, backend, profile)
    assert not attempt.escaped, attempt.evidence


@pytest.mark.parametrize("backend", [BUBBLEWRAP, NAMESPACES], ids=lambda backend: backend.name)
@pytest.mark.parametrize(
    "name",
    ["memory_hog", "memory_by_many", "memory_by_forking_away", "memory_behind_dead_thread", "memory_behind_a_page",
     "memory_of_a_device", "memory_in_files", "fork_bomb", "thread_bomb", "endless_loop", "loop_by_unawaited"],
)  # fmt: skip
def test_limits_hold_without_a_control_group(backend: Backend, name: str) -> None:
    probe = next(probe for probe in catalogue() if probe.name == name)
    attempt = try_inside(probe, backend, "toolchain", counted=False)
    assert not attempt.escaped, attempt.evidence


@pytest.mark.parametrize("probe", OUTSIDE, ids=lambda probe: probe.name)
def test_probe_escapes_where_there_is_no_sandbox(probe: Probe) -> None:
    attempt = try_outside(probe)
    if isinstance(attempt, str):
        assert probe.needs_root
        assert os.geteuid() != 0
        return
    assert attempt.escaped, f"the probe proves nothing, it fails outside too: {attempt.evidence}"


def test_suite_covers_each_guarantee_with_many_kinds_of_attempt() -> None:
    assert len(catalogue()) >= 35
    for guarantee in Guarantee:
        own = [probe for probe in catalogue() if probe.guarantee == guarantee]
        assert any(probe.core for probe in own), guarantee


def test_every_probe_that_is_not_applicable_has_a_reason() -> None:
    for backend in CONFINING:
        for probe in catalogue():
            for profile in ("pure", "toolchain"):
                reason = not_applicable(probe, backend, profile)
                assert reason == "" or len(reason) > 20


def weaker_by_design(backend: Backend, profile: Profile, guarantee: Guarantee) -> bool:
    """Say whether docs/sandbox.md admits this gap; any other missing guarantee is a failure of this suite."""
    gaps = {
        ("kernel", "pure", Guarantee.NO_PRIVS): os.geteuid() == 0,  # the interpreter may be closed to other uids
    }
    return gaps.get((backend.name, profile, guarantee), False)
