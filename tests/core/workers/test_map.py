import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import psutil
import pytest

from core.errors import BadInput
from core.workers.inline import InlineBackend
from core.workers.map import map_tasks
from core.workers.process import ProcessBackend
from core.workers.task import Task
from tests.core.workers import jobs

BACKENDS = [InlineBackend, ProcessBackend]
both = pytest.mark.parametrize("backend", BACKENDS, ids=["inline", "process"])


def by_key(ends):
    return {end.key: end for end in ends}


def gone(pid):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


@both
def test_every_task_ends_once_with_its_value(backend):
    ends = list(map_tasks((Task(key=str(n), call=partial(jobs.double, n)) for n in range(20)), backend({"cpu": 2})))
    assert len(ends) == 20
    assert {end.key: end.value for end in ends} == {str(n): 2 * n for n in range(20)}
    assert all(end.failure is None and end.tries == 1 for end in ends)


@both
def test_nothing_to_do_is_done_at_once(backend):
    assert list(map_tasks([], backend())) == []


@both
def test_exceptions_are_failures_and_only_our_own_are_retried(backend):
    tasks = [Task(key=kind, call=partial(jobs.fail, kind)) for kind in ("infra", "ours", "other")]
    ends = by_key(map_tasks(tasks, backend(), retries=2))
    assert [(ends[k].failure.reason, ends[k].tries) for k in ("infra", "ours", "other")] == [
        ("infra_error", 3),
        ("crash", 1),
        ("crash", 1),
    ]
    assert ends["other"].failure.message == "ZeroDivisionError: oops"


@both
def test_a_task_that_recovers_within_its_retries_succeeds(backend, tmp_path):
    (end,) = map_tasks([Task(key="f", call=partial(jobs.flaky, str(tmp_path), 2))], backend(), retries=2)
    assert (end.value, end.tries) == ("done", 3)


@both
def test_a_missing_resource_is_named_before_anything_starts(backend, tmp_path):
    tasks = [
        Task(key="ok", call=partial(jobs.flaky, str(tmp_path), 0)),
        Task(key="chip", call=jobs.pid, needs={"emulated_tpu": 1}),
    ]
    with pytest.raises(BadInput, match="Task 'chip' needs 1 emulated_tpu; the workers have 2 cpu"):
        list(map_tasks(tasks, backend({"cpu": 2})))
    assert not list(tmp_path.iterdir())
    with pytest.raises(BadInput, match="needs 3 cpu"):
        list(map_tasks([Task(key="big", call=jobs.pid, needs={"cpu": 3})], backend({"cpu": 2})))


@both
def test_two_tasks_with_one_key_are_refused(backend):
    with pytest.raises(BadInput, match="named 'a'"):
        list(map_tasks([Task(key="a", call=jobs.pid)] * 2, backend()))


@both
def test_progress_ends_with_everything_ended(backend):
    seen = []
    tasks = [
        *(Task(key=str(n), call=partial(jobs.double, n)) for n in range(4)),
        Task(key="x", call=partial(jobs.fail, "ours")),
    ]
    list(map_tasks(tasks, backend(), progress=seen.append))
    assert (seen[-1].total, seen[-1].running, seen[-1].ended, seen[-1].failed) == (5, 0, 5, 1)
    assert [p.ended for p in seen] == sorted(p.ended for p in seen)


def test_resources_bound_how_many_run_at_once():
    seen = []
    tasks = [Task(key=str(n), call=partial(jobs.nap, 0.05), needs={"cpu": 1, "gpu": 1}) for n in range(4)]
    tasks += [Task(key=f"c{n}", call=partial(jobs.nap, 0.05)) for n in range(4)]
    list(map_tasks(tasks, ProcessBackend({"cpu": 3, "gpu": 1}), progress=seen.append))
    assert max(p.running for p in seen) == 3


def test_results_stream_as_they_end():
    tasks = [Task(key="slow", call=partial(jobs.nap, 30.0)), Task(key="fast", call=partial(jobs.nap, 0.0, 1))]
    ends = map_tasks(tasks, ProcessBackend({"cpu": 2}))
    assert next(ends).key == "fast"
    began = time.monotonic()
    ends.close()
    assert time.monotonic() - began < 10


def test_a_hung_task_is_killed_and_the_others_go_on():
    tasks = [Task(key="hang", call=jobs.hang, timeout_s=0.3), *(Task(key=str(n), call=jobs.pid) for n in range(4))]
    ends = by_key(map_tasks(tasks, ProcessBackend({"cpu": 1})))
    assert (ends["hang"].failure.reason, ends["hang"].tries) == ("timeout", 1)
    assert ends["hang"].failure.message.endswith("of 0.3 s")
    assert all(ends[str(n)].failure is None for n in range(4))


def test_inline_reports_a_task_over_its_time():
    (end,) = map_tasks([Task(key="n", call=partial(jobs.nap, 0.05), timeout_s=0.01)], InlineBackend())
    assert end.failure.reason == "timeout"


def test_a_kill_takes_along_what_the_task_started(tmp_path):
    path = tmp_path / "pid"
    (end,) = map_tasks([Task(key="h", call=partial(jobs.hang_with_child, str(path)), timeout_s=1.0)], ProcessBackend())
    assert end.failure.reason == "timeout"
    assert gone(int(path.read_text()))


def test_a_dead_worker_is_our_own_error_and_is_retried(tmp_path):
    (end,) = map_tasks([Task(key="d", call=partial(jobs.die, str(tmp_path), 2))], ProcessBackend(), retries=2)
    assert (end.value, end.tries) == ("alive", 3)
    (end,) = map_tasks([Task(key="d", call=partial(jobs.die, str(tmp_path), 99))], ProcessBackend(), retries=1)
    assert (end.failure.reason, end.tries) == ("infra_error", 2)
    assert end.failure.message == "its worker died (signal 9)"


def test_a_task_that_exits_its_worker_is_told_apart():
    (end,) = map_tasks([Task(key="e", call=jobs.leave)], ProcessBackend(), retries=0)
    assert end.failure.message == "its worker died (exit code 3)"


def test_workers_are_reused():
    ends = list(map_tasks([Task(key=str(n), call=jobs.pid) for n in range(6)], ProcessBackend({"cpu": 1})))
    assert len({end.value for end in ends}) == 1
    assert ends[0].value != os.getpid()


def test_what_cannot_be_sent_is_named():
    with pytest.raises(BadInput, match="Task 'l' cannot be sent to a worker"):
        list(map_tasks([Task(key="l", call=lambda: 1)], ProcessBackend()))
    (end,) = map_tasks([Task(key="u", call=jobs.unpicklable)], ProcessBackend())
    assert "cannot be sent back" in end.failure.message


def test_cancelling_kills_what_runs_and_ends():
    cancel = threading.Event()
    threading.Timer(0.5, cancel.set).start()
    began = time.monotonic()
    tasks = [Task(key="a", call=jobs.hang), Task(key="b", call=jobs.hang)]
    assert list(map_tasks(tasks, ProcessBackend({"cpu": 2}), cancel=cancel)) == []
    assert time.monotonic() - began < 30
    assert not [p for p in psutil.Process().children() if p.name() == "complab-worker"]


def test_nothing_survives_a_killed_parent(tmp_path):
    path = tmp_path / "pid"
    code = (
        "from functools import partial\nfrom core.workers.map import map_tasks\nfrom core.workers.task import Task\n"
        "from core.workers.process import ProcessBackend\nfrom tests.core.workers import jobs\n"
        "if __name__ == '__main__':\n"
        f"    task = Task(key='h', call=partial(jobs.hang_with_child, {str(path)!r}))\n"
        "    list(map_tasks([task], ProcessBackend()))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 60
    while not (path.exists() and path.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    with contextlib.suppress(FileNotFoundError):
        assert gone(int(path.read_text()))
