"""Untrusted functions give back validated data or a readable failure, in every backend that has profile pure."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import BadInput
from core.records import Record
from core.sandbox.call import Answer, CallFailed, call
from core.sandbox.decode import Malformed, decode_json, decode_message, decode_npy, decode_npz
from core.sandbox.policy import Guarantee, Limits, Policy
from core.sandbox.service import Box


class Reply(Record):
    total: int
    note: str = ""


ASKED = frozenset(Guarantee) - {Guarantee.NO_PRIVS, Guarantee.PIDS}
"""What every backend proves for `pure`, also `kernel` as root and as a user without control groups."""


def ask(source: str, *arguments: Any, backend: str | None = None, wall_s: float = 30.0, **arrays: Any) -> Answer[Reply]:
    policy = Policy(profile="pure", required=ASKED, limits=Limits(wall_s=wall_s))
    return call(source, "f", list(arguments), arrays, Reply, policy, box=Box(backend=backend))


@pytest.mark.parametrize("backend", ["bubblewrap", "namespaces", "kernel"])
def test_reply_and_arrays_come_back(backend: str) -> None:
    source = (
        "def f(n, x):\n    print('hi')\n    return {'total': int(x.sum()) + n, 'note': 'a\"\\n\u00e9'}, {'y': x * 2}"
    )
    answer = ask(source, 1, backend=backend, x=np.arange(6, dtype=np.float32).reshape(2, 3))
    assert answer.reply == Reply(total=16, note='a"\n\u00e9')
    assert answer.arrays["y"].dtype == np.float32
    assert answer.arrays["y"].tolist() == [[0, 2, 4], [6, 8, 10]]
    assert answer.result.stdout == b"hi\n"
    assert answer.result.backend == backend


@pytest.mark.parametrize("backend", ["bubblewrap", "namespaces", "kernel"])
def test_threads_are_allowed_and_processes_are_not(backend: str) -> None:
    source = """
import os, subprocess, threading
def f():
    done = []
    t = threading.Thread(target=done.append, args=(1,)); t.start(); t.join()
    denied = 0
    for attempt in (os.fork, lambda: os.execv('/bin/true', ['true']), lambda: subprocess.run(['/bin/true']),
                    lambda: os.posix_spawn('/bin/true', ['true'], {})):
        try: attempt()
        except OSError: denied += 1
    return {'total': 10 * len(done) + denied}
"""
    assert ask(source, backend=backend).reply.total == 14


SCRIBBLE = """
import os
def f():
    for fd in range(3, 999):
        try: os.write(fd, b"{}" * 40)
        except OSError: pass
"""


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def f():\n  x = 1\n  raise ValueError('why')", r"ValueError: why \(line 3\)"),
        ("def f(:", "SyntaxError"),
        ("def g(): pass", "KeyError"),
        ("def f(): return {'total': 'many'}", "total"),
        ("def f(): return {'total': 1, 'more': 2}", "more"),
        ("def f(): return 3", "Reply"),
        ("def f(): return {'total': float('nan')}", "not JSON"),
        ("def f(): return {'total': object()}", "not JSON"),
        ("def f():\n  import os; os._exit(3)", "exit 3"),
        ("def f(): raise SystemExit(0)", "SystemExit"),
        ("def f():\n  import os; os.abort()", "signal 6"),
        (SCRIBBLE,
         "nonce"),
        ("def f():\n  x = []\n  for _ in range(100000): x = [x]\n  return x", "Recursion"),
    ],
)  # fmt: skip
def test_failures_are_told(source: str, message: str) -> None:
    with pytest.raises(CallFailed, match=message):
        ask(source)


def test_endless_function_is_stopped() -> None:
    with pytest.raises(CallFailed, match="wall limit") as caught:
        ask("def f():\n  while True: pass", wall_s=0.5)
    assert caught.value.result.status == "timeout"


def test_answers_do_not_leak_from_one_call_to_the_next() -> None:
    source = "import builtins\ndef f():\n  n = getattr(builtins, 'n', 0); builtins.n = n + 1; return {'total': n}"
    assert [ask(source).reply.total for _ in range(2)] == [0, 0]


def test_toolchain_profile_is_refused() -> None:
    with pytest.raises(BadInput, match="pure"):
        call("", "f", [], {}, Reply, Policy(profile="toolchain"))


def test_object_arrays_cannot_be_sent() -> None:
    with pytest.raises(BadInput, match="dtype"):
        ask("def f(x): pass", x=np.array([object()]))


def message(document: Any, **entries: Any) -> bytes:
    body = entries.pop("body", b"")
    text = json.dumps({"__metadata__": {"document": json.dumps(document)}, **entries}).encode()
    return len(text).to_bytes(8, "little") + text + body


F32 = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def test_message_with_an_array() -> None:
    document, arrays = decode_message(message({"a": 1}, x=F32, body=bytes(8)))
    assert document == {"a": 1}
    assert arrays["x"].tolist() == [0, 0]
    arrays["x"][0] = 1  # its own memory, not a view of the wire


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff" * 8,
        message(1, x=F32, body=bytes(7)),
        message(1, x=F32, body=bytes(9)),
        message(1, x={**F32, "shape": [3]}, body=bytes(8)),
        message(1, x={**F32, "shape": [-2]}, body=bytes(8)),
        message(1, x={**F32, "shape": [True, 2]}, body=bytes(8)),
        message(1, x={**F32, "shape": [2**62, 2**62]}, body=bytes(8)),
        message(1, x={**F32, "shape": [1] * 17 + [2]}, body=bytes(8)),
        message(1, x={**F32, "dtype": "O"}, body=bytes(8)),
        message(1, x={**F32, "data_offsets": [8, 0]}, body=bytes(8)),
        message(1, x=F32, y=F32, body=bytes(8)),
        message(1, x=3),
        (2).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
    ],
)
def test_malformed_messages_are_refused(payload: bytes) -> None:
    with pytest.raises(Malformed):
        decode_message(payload)


@given(st.binary(max_size=300))
def test_no_bytes_do_more_than_being_refused(payload: bytes) -> None:
    for decode in (decode_message, decode_npy, lambda p: decode_npz(p, 1000), lambda p: decode_json(p, Reply)):
        try:
            decode(payload)
        except Malformed:
            continue


def test_json_is_strict() -> None:
    assert decode_json(b'{"total": 3}', Reply) == Reply(total=3)
    for text in (b'{"total": NaN}', b'{"total": 1, "x": 1}', b"{", b"[" * 100000, b"\xff", b'{"total": 1e400}'):
        with pytest.raises(Malformed):
            decode_json(text, Reply)


def saved(array: Any, **more: Any) -> bytes:
    import io

    stream = io.BytesIO()
    np.save(stream, array, **more)
    return stream.getvalue()


def test_npy_and_npz_round_trip_and_refuse_pickles_and_bombs() -> None:
    import io
    import zipfile

    array = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    assert np.array_equal(decode_npy(saved(array)), array)
    with pytest.raises(Malformed, match="plain number"):
        decode_npy(saved(np.array([{}]), allow_pickle=True))
    lying = saved(np.zeros(4)).replace(b"(4,)", b"(9,)")
    with pytest.raises(Malformed):
        decode_npy(lying)
    stream = io.BytesIO()
    np.savez_compressed(stream, a=array, b=np.zeros(1000))
    assert decode_npz(stream.getvalue(), 10_000).keys() == {"a", "b"}
    with pytest.raises(Malformed, match="more than"):
        decode_npz(stream.getvalue(), 5_000)
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(50_000_000))
    with pytest.raises(Malformed, match="more than"):
        decode_npz(bomb.getvalue(), 1_000_000)
