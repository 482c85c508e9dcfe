"""Proves by trying what each backend guarantees on this machine, and remembers it for a while."""

import contextlib
import hashlib
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from core.cache import cache_dir
from core.errors import ComplabError, InfraError
from core.files import write_whole
from core.records import Record, canonical_json
from core.sandbox.backends import CONFINING, Backend
from core.sandbox.escapes import Attempt, Probe, catalogue, not_applicable, try_inside, try_outside
from core.sandbox.launcher import python
from core.sandbox.policy import Guarantee, Profile

_KEEP_S = 24 * 3600.0
_AT_ONCE = 4
_lock = threading.Lock()
_known: dict[tuple[str, Profile], "ProfileReport"] = {}
_controls: dict[str, Attempt | str] = {}


class Trial(Record):
    """One probe, outside and inside."""

    probe: str
    what: str
    guarantee: Guarantee
    outside: str
    """What happened unconfined; a probe that cannot succeed there proves nothing."""
    control: bool | None
    """Whether it escaped unconfined; None: not tried there, `outside` says why."""
    inside: str
    held: bool


class ProfileReport(Record):
    """What a backend proved under one profile."""

    guarantees: frozenset[Guarantee]
    trials: tuple[Trial, ...]
    problem: str = ""
    """Why the backend does not work at all here."""


class ProbeReport(Record):
    """What a backend proved."""

    backend: str
    hint: str
    """What to install or allow where it proves too little."""
    profiles: dict[Profile, ProfileReport]


def probe(*, full: bool = False) -> dict[str, ProbeReport]:
    """Prove every guarantee of every backend by trying.

    Args:
        full: run all probes, always afresh (tens of seconds); otherwise the few that decide, or what is remembered.

    Returns:
        The reports by backend, strongest first.
    """
    return {
        backend.name: ProbeReport(
            backend=backend.name,
            hint=backend.fix,
            profiles={p: _try(backend, p, catalogue()) if full else report(backend, p) for p in backend.profiles},
        )
        for backend in CONFINING
    }


def proven(backend: Backend, profile: Profile) -> frozenset[Guarantee]:
    """Return what a backend has proved on this machine since it was booted, trying now if nothing is remembered."""
    return report(backend, profile).guarantees


def report(backend: Backend, profile: Profile) -> ProfileReport:
    """Return the remembered report of a backend under a profile, or make it."""
    key = (backend.name, profile)
    with _lock:
        if key not in _known:
            path = cache_dir("sandbox") / f"{backend.name}-{profile}-{_circumstances()}.json"
            remembered = _load(path)
            if remembered is None:
                remembered = _try(backend, profile, tuple(p for p in catalogue() if p.core))
                if not remembered.problem:  # what hinders it may be mended any moment
                    _save(path, remembered)
            _known[key] = remembered
        return _known[key]


def _try(backend: Backend, profile: Profile, probes: tuple[Probe, ...]) -> ProfileReport:
    """Run probes; a guarantee is proven when all its probes held and at least one of them escaped outside."""
    applicable = [p for p in probes if not not_applicable(p, backend, profile)]
    try:
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            trials = tuple(pool.map(lambda p: _trial(p, backend, profile), applicable))
    except InfraError as error:
        return ProfileReport(guarantees=frozenset(), trials=(), problem=str(error))
    return ProfileReport(guarantees=judge(trials), trials=trials)


def judge(trials: tuple[Trial, ...]) -> frozenset[Guarantee]:
    """Return the guarantees whose probes all held, with at least one that could have failed."""
    return frozenset(
        guarantee
        for guarantee in Guarantee
        if all(t.held for t in trials if t.guarantee == guarantee)
        and any(t.control for t in trials if t.guarantee == guarantee)
    )


def _trial(probe: Probe, backend: Backend, profile: Profile) -> Trial:
    inside = try_inside(probe, backend, profile)
    if probe.name not in _controls:
        _controls[probe.name] = try_outside(probe)
    outside = _controls[probe.name]
    return Trial(
        probe=probe.name,
        what=probe.what,
        guarantee=probe.guarantee,
        outside=outside if isinstance(outside, str) else outside.evidence,
        control=None if isinstance(outside, str) else outside.escaped,
        inside=inside.evidence,
        held=not inside.escaped,
    )


@cache
def _circumstances() -> str:
    """Return a digest of all that a proof depends on."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    facts: list[object] = [boot, os.uname().release, os.geteuid(), python(), Path("/proc/self/cgroup").read_text()]
    for tool in ("bwrap", "setpriv", "prlimit"):
        path = shutil.which(tool)
        facts.append([path, os.stat(path).st_mtime_ns if path else 0])
    own = hashlib.sha256()
    for source in sorted(Path(__file__).parent.rglob("*")):
        if source.suffix in (".py", ".yaml"):
            own.update(source.read_bytes())
    return hashlib.sha256(canonical_json([*facts, own.hexdigest()])).hexdigest()[:24]


def _load(path: Path) -> ProfileReport | None:
    try:
        if time.time() - path.stat().st_mtime > _KEEP_S:
            return None
        return ProfileReport.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):  # absent or from a torn write: try again
        return None


def _save(path: Path, made: ProfileReport) -> None:
    for old in path.parent.glob(f"{path.name.rpartition('-')[0]}-*.json"):
        old.unlink(missing_ok=True)
    with contextlib.suppress(ComplabError):  # a full disk: this process remembers, the next tries again
        write_whole(path, made.model_dump_json().encode(), durable=False)
