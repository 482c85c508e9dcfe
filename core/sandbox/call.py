"""Calls one Python function of untrusted source in a fresh confined child and takes back data, never objects."""

import marshal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np

from core.errors import BadInput, ComplabError
from core.records import Json
from core.sandbox.decode import DTYPES, Arrays, Malformed, R, decode_message, validate
from core.sandbox.execution import Tree
from core.sandbox.policy import Command, Policy, Result
from core.sandbox.service import Box

_GRACE_S = 5.0
_CODES = frozenset(np.dtype(code).str for code in DTYPES.values())
_MODULES = ("channel_child", "call_child")


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer(Generic[R]):
    """What the function returned, checked, and how its child fared."""

    reply: R
    arrays: Arrays
    result: Result


class CallFailed(ComplabError):
    """The function gave no usable answer; `result` says how its child ended."""

    def __init__(self, what: str, result: Result) -> None:
        super().__init__(what)
        self.result = result


def call(
    source: str,
    function: str,
    arguments: list[Json],
    arrays: Mapping[str, np.ndarray[Any, Any]],
    reply: type[R],
    policy: Policy,
    *,
    box: Box | None = None,
) -> Answer[R]:
    """Run a function of untrusted source in profile `pure`.

    Args:
        source: Python source that nobody trusts.
        function: name of the function that it defines.
        arguments: positional arguments.
        arrays: keyword arguments; numpy is imported in the child only when there are some here or in the answer.
        reply: model of the function's return value. It returns JSON, or a pair of JSON and a dict of arrays.
        policy: must have profile `pure`.
        box: the sandbox to use; None: `open_sandbox()`.

    Raises:
        CallFailed: it raised, ended, ran into a limit, tampered with the channel, or answered something else.
        SandboxUnavailable, InfraError, BadInput: as `Sandbox.run`.
    """
    if policy.profile != "pure":
        raise BadInput(f"A function call needs profile `pure`, not `{policy.profile}`.")
    backend, guarantees = (box or Box()).choose(policy)
    tree = Tree(backend, Command(argv=()), policy, guarantees, modules=_MODULES)
    try:
        payload = tree.ask(_request(source, function, arguments, arrays), policy.limits.wall_s)
        if payload is not None:
            tree.hang_up(_GRACE_S)
    finally:
        result = tree.finish(conversed=True)
    if payload is None or result.status == "tampered":
        how = result.detail or f"{result.status} {result.exit_code if result.signal is None else result.signal}"
        said = result.stderr.decode(errors="replace").strip()[-300:]
        raise CallFailed(f"The function {function} gave no answer: {how}. {said}".rstrip(), result)
    try:
        document, found = decode_message(payload)
        if isinstance(document, dict) and document.keys() == {"raised"}:
            raise CallFailed(f"The function {function} raised {str(document['raised'])[:3000]}.", result)
        if not isinstance(document, dict) or document.keys() != {"reply"}:
            raise Malformed("The confined code's answer is neither a reply nor an error.")
        return Answer(reply=validate(document["reply"], reply), arrays=found, result=result)
    except Malformed as error:
        raise CallFailed(error.what, result) from error


def _request(source: str, function: str, arguments: list[Json], arrays: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    if unsendable := {name: a.dtype for name, a in arrays.items() if a.dtype.newbyteorder("<").str not in _CODES}:
        raise BadInput(f"Arrays of these dtypes cannot be sent into the sandbox: {unsendable}.")
    plain = {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in arrays.items()}
    request = {"source": source, "function": function, "arguments": arguments, "arrays": plain, "dtypes": DTYPES}
    return marshal.dumps(request)
