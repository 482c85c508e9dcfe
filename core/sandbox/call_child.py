"""Runs one function of untrusted source inside, in the interpreter that has just confined itself, and sends its answer.

`launcher.py` runs it after `launch.py` and `channel_child.py`, in the same name space; the parent never imports it.
What it sends is only data to the parent: the function can forge its own answer, and nothing else.
"""

from __future__ import annotations

import marshal
import os
import sys
from _json import encode_basestring_ascii as _quote  # the json package would double the time of the start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from core.sandbox.channel_child import Channel


def _json(value: Any) -> str:
    """Return strict JSON text."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return str(_quote(value))
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError(f"{value} is not JSON")
        return float.__repr__(value)
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("JSON keys are strings")
        return "{" + ",".join(f"{_quote(key)}:{_json(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_json, value)) + "]"
    if hasattr(type(value), "__index__"):
        return str(value.__index__())
    raise TypeError(f"{type(value).__name__} is not JSON")


def _restore(arrays: dict[str, tuple[str, tuple[int, ...], bytes]]) -> dict[str, Any]:
    if not arrays:
        return {}
    import numpy as np

    return {name: np.frombuffer(data, dtype=code).reshape(shape).copy() for name, (code, shape, data) in arrays.items()}


def _pack(document: Any, arrays: dict[str, Any], dtypes: dict[str, str]) -> bytes:
    """Return a safetensors file whose metadata entry `document` is the JSON."""
    header: dict[str, Any] = {"__metadata__": {"document": _json(document)}}
    parts, at = [], 0
    if arrays:
        import numpy as np

        names = {np.dtype(code): name for name, code in dtypes.items()}
        for name, value in arrays.items():
            array = np.asarray(value)
            array = array.astype(array.dtype.newbyteorder("<"), copy=False)
            if array.dtype not in names:
                raise TypeError(f"array {name!r} has dtype {array.dtype}; {', '.join(dtypes)} can be sent")
            data = array.tobytes()
            entry = {"dtype": names[array.dtype], "shape": list(array.shape), "data_offsets": [at, at + len(data)]}
            header[name] = entry
            parts.append(data)
            at += len(data)
    text = _json(header).encode()
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def _serve(channel: Channel) -> None:
    payload = channel.receive()
    if payload is None:
        return
    request = marshal.loads(payload)  # from the parent, which is trusted; nothing marshalled goes back
    try:
        space: dict[str, Any] = {"__name__": "candidate"}
        exec(compile(request["source"], "<candidate>", "exec"), space)
        answer = space[request["function"]](*request["arguments"], **_restore(request["arrays"]))
        document, found = answer if isinstance(answer, tuple) else (answer, {})
        reply = _pack({"reply": document}, found, request["dtypes"])
    except BaseException as error:  # whatever the candidate raises is its answer; even SystemExit
        line, trace = 0, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == "<candidate>":
                line = trace.tb_lineno
            trace = trace.tb_next
        said = f"{type(error).__name__}: {str(error)[:2000]}" + (f" (line {line})" if line else "")
        reply = _pack({"raised": said}, {}, {})
    channel.send(reply)


sys.path += globals()["SPEC"]["path"]
_serve(Channel())
sys.stdout.flush()
sys.stderr.flush()
os._exit(0)  # taking the interpreter apart would only cost time
