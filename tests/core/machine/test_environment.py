import pytest

from core.machine import cpu
from core.machine.environment import Environment, environment


def test_digest_ignores_the_moment_but_not_the_machine() -> None:
    here = environment()
    later = here.model_copy(update={"load_1min": here.load_1min + 3, "memory_free_bytes": 1})
    assert later.digest() == here.digest()
    for field, value in (("cores", 99), ("kernel", "0"), ("threads", {"OMP_NUM_THREADS": "7"}), ("dirty", None)):
        changed = here.model_copy(update={field: value})
        assert (changed.digest() == here.digest()) == (getattr(here, field) == value), field


def test_record_survives_json() -> None:
    here = environment()
    assert Environment.model_validate_json(here.model_dump_json()) == here


def test_thread_settings_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert environment().threads["OMP_NUM_THREADS"] == "5"


def test_cpuinfo_is_read_by_exact_field_name() -> None:
    text = "processor\t: 0\nmodel\t\t: 1\nmodel name\t: Some CPU @ 2GHz: fast\nflags\t\t: b a\n"
    assert cpu.cpuinfo_field(text, "model name") == "Some CPU @ 2GHz: fast"
    assert cpu.cpuinfo_field(text, "model") == "1"
    assert cpu.cpuinfo_field(text, "absent") is None


def test_quietest_core_is_the_least_busy_allowed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "allowed_cores", lambda: (0, 1, 2))
    idle = {core: cpu.CoreTimes(busy=0, total=0) for core in range(4)}
    busy = (90, 10, 50, 0)  # core 3 is quieter, but not ours
    after = {core: cpu.CoreTimes(busy=busy[core], total=100) for core in range(4)}
    assert cpu.quietest_core(idle, after) == 1
    assert cpu.quietest_core(idle, idle) == 2
    assert cpu.quietest_core({}, after) is None


def test_this_machine_shows_its_cores() -> None:
    assert set(cpu.allowed_cores()) <= set(cpu.core_times())
