"""Child process: serves one GGUF file on loopback through xllamacpp. Run by path, imports nothing of complab.

It reads one JSON line of settings from stdin, answers one JSON line (`address` and `version`, or `error`) on stdout,
and serves until its parent is gone. All that llama.cpp prints goes to stderr.
"""

import ctypes
import json
import os
import signal
import sys
import time
from types import FrameType

_PR_SET_PDEATHSIG = 1


def _end_with(parent: int) -> None:
    """End when the parent ends, however it ends.

    The death signal also comes when only the thread that started us ends, so the handler looks who the parent is.
    """

    def check(_signal: int, _frame: FrameType | None) -> None:
        if os.getppid() != parent:
            os._exit(0)

    signal.signal(signal.SIGUSR1, check)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle; it closes us
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGUSR1)
    if os.getppid() != parent:
        os._exit(0)


def main() -> None:
    """Serve until the parent is gone."""
    settings = json.loads(sys.stdin.readline())
    parent = settings["parent"]
    _end_with(parent)
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = settings["path"]
        params.n_ctx = settings["context_tokens"]
        params.n_parallel = 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.api_keys = [settings["api_key"]]
        params.cache_ram_mib = 0  # no prompt state beyond the one slot: answers must not depend on older requests
        params.warmup = False
        params.ui = False
        params.verbosity = -1
        server = xllamacpp.Server(params)
        reply = {"address": server.listening_address, "version": xllamacpp.__version__}
    except Exception as error:  # the whole process is one try: the parent turns this into an error for people
        reply = {"error": f"{type(error).__name__}: {error}"}
    answer.write(json.dumps(reply) + "\n")
    answer.close()
    while "address" in reply and os.getppid() == parent:  # also ends where there is no death signal
        time.sleep(1.0)
    os._exit(0)


if __name__ == "__main__":
    main()
