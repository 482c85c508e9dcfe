"""Runs inside the sandbox: calls two Python callables as the parent commands, and reports this process's clocks.

It is started as a file of its own in the working directory (core is not visible there), with `baseline.py`,
`candidate.py`, `input` and the sandbox's `channel_child.py` beside it. The clocks are bound before an arm is loaded.
See callables.py for the parent.
"""

import gc
import importlib.util
import json
import os
import resource
import sys
import time
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.sandbox.channel_child import Channel

_NAMES = ("baseline", "candidate")
_WARM_UP_CALLS = 5
_wall, _cpu, _thread, _usage = time.monotonic_ns, time.process_time_ns, time.thread_time_ns, resource.getrusage


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, os.path.abspath(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _load(name: str, given: bytes) -> ModuleType:
    module = _module(name)
    if hasattr(module, "setup"):
        module.setup(given)
    for _ in range(_WARM_UP_CALLS):
        module.run()
    return module


def _timed(run: Any, calls: int) -> dict[str, int]:
    turns = range(calls)
    before = _usage(resource.RUSAGE_SELF).ru_nivcsw
    wall, cpu, thread = _wall(), _cpu(), _thread()
    for _ in turns:
        run()
    thread, cpu, wall = _thread() - thread, _cpu() - cpu, _wall() - wall
    switches = _usage(resource.RUSAGE_SELF).ru_nivcsw - before
    return {"wall_ns": wall, "cpu_ns": cpu, "thread_ns": thread, "switches": switches}


def _main() -> None:
    channel: Channel = _module("channel_child").Channel()
    modules: dict[int, ModuleType] = {}
    while (request := channel.receive()) is not None:
        asked = json.loads(request)
        try:
            if "core" in asked:
                if asked["core"] is not None:
                    os.sched_setaffinity(0, {asked["core"]})
                with open("input", "rb") as file:
                    given = file.read()
                reply = b"{}"
            elif "load" in asked:
                modules[asked["load"]] = _load(_NAMES[asked["load"]], given)
                gc.collect()
                gc.freeze()
                gc.disable()
                reply = b"{}"
            elif "output" in asked:
                reply = bytes(modules[asked["output"]].output())
            else:
                timed = _timed(modules[asked["run"]].run, asked["calls"])
                reply = json.dumps({**timed, "threads": len(os.listdir("/proc/self/task"))}).encode()
        except Exception as error:
            channel.send(b"!" + f"{type(error).__name__}: {error}".encode())
        else:
            channel.send(b"." + reply)


_main()
