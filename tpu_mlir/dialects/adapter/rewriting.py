"""Runs our patterns: greedily within a dialect, or as a full conversion into another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tpu_mlir.dialects.adapter.bindings import Module, Value, Values, ir, rewrite
from tpu_mlir.dialects.adapter.building import build
from tpu_mlir.dialects.adapter.errors import Diagnostic, IrError, complaints
from tpu_mlir.dialects.adapter.reading import Call, calls, functions, read
from tpu_mlir.dialects.catalog import SPECS
from tpu_mlir.dialects.spec import AttrValue


@dataclass(frozen=True, slots=True)
class Make:
    """Builds the ops of a replacement in place of the matched op, under its name unless another is given."""

    call: Call
    point: Any

    def __call__(self, op_name: str, *operands: Values, name: str | None = None, **attrs: AttrValue) -> Value:
        """Build an op and return its first result; arguments as of `build.FunctionWriter.op`."""
        spec = SPECS[op_name]
        named = {o.name: v for o, v in zip(spec.operands, operands, strict=False)}
        return build(spec, named, attrs, self.call.name if name is None else name, self.point)[0]

    def renamed(self, name: str) -> "Make":
        """Return a builder whose ops have another tensor's name."""
        return Make(replace(self.call, name=name), self.point)

    def again(self, operands: Mapping[str, Values], attrs: Mapping[str, AttrValue], op_name: str) -> tuple[Value, ...]:
        """Build an op that takes operands and attributes by name, and return its results."""
        return build(SPECS[op_name], operands, attrs, self.call.name, self.point)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A rewrite of one kind of op: returns the values that replace its results, or None when it does not apply."""

    root: str
    rewrite: Callable[[Call, Make], Sequence[Value] | None]


def rewrite_greedily(module: Module, patterns: Sequence[Pattern]) -> None:
    """Apply patterns until none applies, and drop ops that nobody uses.

    Raises:
        IrError: the patterns do not come to an end, or built an op that is refused.
    """
    failures = _Failures()
    callbacks = [failures.guard(_greedy(pattern)) for pattern in patterns]  # the set does not keep them alive
    with module.context, ir.Location.unknown(), complaints("The rewrite failed."):
        held = rewrite.RewritePatternSet()
        for pattern, callback in zip(patterns, callbacks, strict=True):
            held.add(pattern.root, callback)
        rewrite.apply_patterns_and_fold_greedily(module, held.freeze())
    failures.raise_first()


def _greedy(pattern: Pattern) -> Callable[..., bool]:
    def callback(operation: Any, rewriter: Any) -> bool:
        call = read(operation)
        new = pattern.rewrite(call, Make(call, rewriter.ip))
        if new is None:
            return True
        rewriter.replace_op(operation.operation, list(new))
        return False

    return callback


def convert(module: Module, patterns: Sequence[Pattern], target: str) -> None:
    """Convert every op into the target dialect by patterns that keep all types.

    Raises:
        IrError: ops without a pattern, or refused replacements; each is named with its location.
    """
    covered = {pattern.root for pattern in patterns}
    missing = [
        Diagnostic(c.where, f"{c.spec.name} has no lowering")
        for f in functions(module)
        for c in calls(f)
        if not c.spec.name.startswith(f"{target}.") and c.spec.name not in covered
    ]
    if missing:
        raise IrError("The module cannot be lowered.", missing)
    failures = _Failures()
    callbacks = [failures.guard(_converting(pattern)) for pattern in patterns]
    with module.context, ir.Location.unknown():
        goal, held, types = rewrite.ConversionTarget(), rewrite.RewritePatternSet(), rewrite.TypeConverter()
        for dialect in ("builtin", "func", target):
            goal.add_legal_dialect(dialect)
        types.add_conversion(_same)
        for pattern, callback in zip(patterns, callbacks, strict=True):
            held.add_conversion(pattern.root, callback, types)
        try:
            with complaints("The module cannot be lowered."):
                rewrite.apply_full_conversion(module.operation, goal, held.freeze())
        except IrError:
            failures.raise_first()
            raise
    failures.raise_first()


def _same(kind: Any) -> Any:
    return kind


def _converting(pattern: Pattern) -> Callable[..., bool]:
    def callback(operation: Any, adaptor: Any, _: Any, rewriter: Any) -> bool:
        call = read(operation, list(adaptor.operands))
        new = pattern.rewrite(call, Make(call, rewriter.ip))
        if new is None:
            return True
        rewriter.replace_op(operation.operation, list(new))
        return False

    return callback


class _Failures:
    """Keeps the first exception of a callback, so that it is raised to the caller and not lost inside MLIR."""

    def __init__(self) -> None:
        self._first: Exception | None = None

    def guard(self, callback: Callable[..., bool]) -> Callable[..., bool]:
        """Return the callback with its exceptions kept; after one, nothing matches any more."""

        def guarded(*arguments: Any) -> bool:
            if self._first is not None:
                return True
            try:
                return callback(*arguments)
            except Exception as error:
                self._first = error
                return True

        return guarded

    def raise_first(self) -> None:
        """Raise the first exception, if there was one."""
        if self._first is not None:
            raise self._first
