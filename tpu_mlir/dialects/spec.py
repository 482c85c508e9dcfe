"""How an op is declared: one function whose signature names operands and attributes, and whose body verifies them.

    @op("top.softmax", vendor="Softmax", host=_softmax, flops=5)
    def softmax(x: F32, *, axis: int) -> Tensor:
        '''Exponentials along one axis, divided by their sum.'''
        normal_axis(axis, x)
        return x

Positional parameters are operands: `Annotated[Tensor, Allowed(...)]`, `... | None` when optional, a tuple of any length
when variadic. Keyword-only parameters are attributes: bool, int, float, str, a Literal of strings, tuples of numbers.
The function receives tensor types, refuses what does not fit with `require`, and returns the result types: it is the
verifier and the shape inference in one. `host` computes the same op on numpy arrays, with the same parameters. The
docstring is the op's documentation. The rule of an op with a region takes one more positional parameter, `yielded`.
Nothing about an op is written anywhere else.
"""

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from tpu_mlir.dialects.types import FLOATS, Array, DType, Tensor

OperandTypes: TypeAlias = Tensor | tuple[Tensor, ...] | None
OperandArrays: TypeAlias = Array | tuple[Array, ...] | None
AttrValue: TypeAlias = bool | int | float | str | tuple[int, ...] | tuple[float, ...]


SLOTS = 16
"""Elements that a variadic operand or result may have. The bindings demand one type for all elements of a variadic, so
each element is an optional one of its own, and the segment sizes have an entry for each."""

YIELDED = "yielded"
"""The parameter by which the rule of an op with a region receives the types that the region yields."""


class Mismatch(ValueError):
    """An op's operands, attributes or results contradict its spec; the message says which and how."""


def require(condition: bool, message: str) -> None:
    """Refuse an op.

    Raises:
        Mismatch: the condition is false.
    """
    if not condition:
        raise Mismatch(message)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The element types an operand may have; attached to a parameter with Annotated."""

    dtypes: tuple[DType, ...]


F32 = Annotated[Tensor, Allowed((DType.F32,))]
Float = Annotated[Tensor, Allowed(FLOATS)]
Ids = Annotated[Tensor, Allowed((DType.SI32,))]
Bytes = Annotated[Tensor, Allowed((DType.UI8, DType.SI8))]
AnyTensor = Annotated[Tensor, Allowed(tuple(DType))]


@dataclass(frozen=True, kw_only=True, slots=True)
class Operand:
    """One declared operand."""

    name: str
    dtypes: tuple[DType, ...]
    arity: Literal["one", "optional", "many"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Attribute:
    """One declared attribute; `default` is None when a value must be given."""

    name: str
    kind: Any
    choices: tuple[str, ...] = ()
    default: AttrValue | None = None

    def check(self, value: AttrValue) -> None:
        """Refuse a value of the wrong kind.

        Raises:
            Mismatch: the value is not of this attribute's kind, or not one of its choices.
        """
        if self.kind in (tuple[int, ...], tuple[float, ...]):
            item = get_args(self.kind)[0]
            good = isinstance(value, tuple) and all(type(v) is item for v in value)
        else:
            good = type(value) is self.kind
        require(good, f"attribute {self.name} is {value!r}, wanted {self.kind_name}")
        if self.choices:
            require(
                value in self.choices, f"attribute {self.name} is {value!r}, wanted one of {', '.join(self.choices)}"
            )

    @property
    def kind_name(self) -> str:
        """The kind in words, for messages and tables."""
        if self.choices:
            return " | ".join(self.choices)
        names: dict[Any, str] = {tuple[int, ...]: "ints", tuple[float, ...]: "floats", str: "text"}
        return names.get(self.kind) or str(self.kind.__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class OpSpec:
    """One op, declared once; see the module's docstring."""

    name: str
    vendor: str
    doc: str
    operands: tuple[Operand, ...]
    attributes: tuple[Attribute, ...]
    results: tuple[str, ...]
    many_results: bool
    region: bool
    terminator: bool
    pure: bool
    rule: Callable[..., Tensor | tuple[Tensor, ...]]
    host: Callable[..., Array | tuple[Array, ...]] | None
    flops: Callable[..., int] | int

    @property
    def segmented(self) -> bool:
        """True when the operand list needs its segment sizes written down."""
        return any(o.arity != "one" for o in self.operands)

    def segments(self, counts: Mapping[str, int]) -> list[int]:
        """Return the segment sizes of an operand list, from the number of elements of each operand."""
        sizes = []
        for operand in self.operands:
            count = counts[operand.name]
            sizes += [1] * count + [0] * (SLOTS - count) if operand.arity == "many" else [count]
        return sizes

    def counts(self, sizes: Sequence[int], given: int) -> dict[str, int]:
        """Return the number of elements of each operand, from segment sizes; the inverse of `segments`.

        Raises:
            Mismatch: the sizes fit neither the declaration nor the number of operands given.
        """
        names = ", ".join(o.name for o in self.operands) or "none"
        slots = sum(SLOTS if o.arity == "many" else 1 for o in self.operands)
        require(len(sizes) == slots, f"operandSegmentSizes has {len(sizes)} entries, wanted {slots} ({names})")
        require(sum(sizes) == given, f"{given} operands given, {sum(sizes)} in operandSegmentSizes ({names})")
        rest, counts = list(sizes), {}
        for operand in self.operands:
            length = SLOTS if operand.arity == "many" else 1
            part, rest = rest[:length], rest[length:]
            good = (
                sorted(part, reverse=True) == part and set(part) <= {0, 1} and (operand.arity != "one" or part == [1])
            )
            require(good, f"operand {operand.name} has segment sizes {part}")
            counts[operand.name] = sum(part)
        return counts

    def infer(self, operands: Mapping[str, OperandTypes], attrs: Mapping[str, AttrValue]) -> tuple[Tensor, ...]:
        """Verify operands and attributes, and return the result types.

        Raises:
            Mismatch: an element type, attribute or shape that the op does not take.
        """
        for attr in self.attributes:
            require(attr.name in attrs, f"attribute {attr.name} is missing")
            attr.check(attrs[attr.name])
        for operand in self.operands:
            given = operands[operand.name]
            if isinstance(given, tuple):
                require(len(given) <= SLOTS, f"{operand.name} has {len(given)} elements, at most {SLOTS} are possible")
            for tensor in given if isinstance(given, tuple) else () if given is None else (given,):
                wanted = ", ".join(operand.dtypes)
                require(tensor.dtype in operand.dtypes, f"{operand.name} is {tensor}, wanted elements of {wanted}")
        body = (operands[YIELDED],) if self.region else ()
        out = self.rule(*(operands[o.name] for o in self.operands), *body, **attrs)
        return out if isinstance(out, tuple) else (out,)

    def compute(self, operands: Mapping[str, OperandArrays], attrs: Mapping[str, AttrValue]) -> tuple[Array, ...]:
        """Run the op on the host.

        Raises:
            Mismatch: the op has no host inference (it only moves or names data).
        """
        if self.host is None:
            raise Mismatch(f"{self.name} has no host inference")
        out = self.host(*(operands[o.name] for o in self.operands), **attrs)
        return out if isinstance(out, tuple) else (out,)

    def count_flops(self, operands: Mapping[str, OperandTypes], attrs: Mapping[str, AttrValue]) -> int:
        """Return the floating-point (or integer) operations of one execution; a multiply-add counts as two."""
        if isinstance(self.flops, int):
            return self.flops * sum(t.size for t in self.infer(operands, attrs)) if self.flops else 0
        return self.flops(*(operands[o.name] for o in self.operands), **attrs)

    def with_defaults(self, attrs: Mapping[str, AttrValue]) -> dict[str, AttrValue]:
        """Return the attributes in declaration order, defaults filled in.

        Raises:
            Mismatch: an attribute that the op does not have, or a missing one without a default.
        """
        names = [a.name for a in self.attributes]
        for name in attrs:
            require(name in names, f"{self.name} has no attribute {name}; it has {', '.join(names) or 'none'}")
        full: dict[str, AttrValue] = {}
        for attr in self.attributes:
            value = attrs.get(attr.name, attr.default)
            if value is None:
                raise Mismatch(f"{self.name} needs attribute {attr.name}")
            full[attr.name] = value
        return full


def op(
    name: str,
    *,
    vendor: str = "",
    results: tuple[str, ...] = ("out",),
    host: Callable[..., Array | tuple[Array, ...]] | None = None,
    flops: Callable[..., int] | int = 0,
    many_results: bool = False,
    region: bool = False,
    terminator: bool = False,
    pure: bool = True,
) -> Callable[[Callable[..., Tensor | tuple[Tensor, ...]]], OpSpec]:
    """Declare an op from its rule function.

    Args:
        name: `dialect.op_name`.
        vendor: the name of the op in the published system, when it has one.
        results: names of the results.
        host: host inference on numpy arrays, parameters as the rule's.
        flops: operations per output element, or a function of the rule's parameters.
        many_results: the number of results follows from the rule.
        region: the op holds one region.
        terminator: the op ends a region.
        pure: no effect but its results.

    Returns:
        A decorator that turns the rule into an OpSpec.
    """

    def declare(rule: Callable[..., Tensor | tuple[Tensor, ...]]) -> OpSpec:
        hints = get_type_hints(rule, include_extras=True)
        operands, attributes = [], []
        for parameter in inspect.signature(rule).parameters.values():
            hint = hints[parameter.name]
            if parameter.kind is parameter.KEYWORD_ONLY:
                attributes.append(_attribute(parameter, hint))
            elif not (region and parameter.name == YIELDED):
                operands.append(_operand(parameter.name, hint))
        return OpSpec(
            name=name,
            vendor=vendor,
            doc=inspect.cleandoc(rule.__doc__ or ""),
            operands=tuple(operands),
            attributes=tuple(attributes),
            results=results,
            many_results=many_results,
            region=region,
            terminator=terminator,
            pure=pure,
            rule=rule,
            host=host,
            flops=flops,
        )

    return declare


def _operand(name: str, hint: Any) -> Operand:
    arity: Literal["one", "optional", "many"] = "one"
    if get_origin(hint) in (Union, types.UnionType):
        arity, hint = "optional", get_args(hint)[0]
    elif get_origin(hint) is tuple:
        arity, hint = "many", get_args(hint)[0]
    (allowed,) = get_args(hint)[1:]
    return Operand(name=name, dtypes=allowed.dtypes, arity=arity)


def _attribute(parameter: inspect.Parameter, hint: Any) -> Attribute:
    default = None if parameter.default is parameter.empty else parameter.default
    if get_origin(hint) is Literal:
        return Attribute(name=parameter.name, kind=str, choices=get_args(hint), default=default)
    return Attribute(name=parameter.name, kind=hint, default=default)
