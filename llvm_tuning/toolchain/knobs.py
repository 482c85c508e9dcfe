"""The LLVM options that the tuner may set: names, values, meaning; as data, checked against the installed compiler."""

from collections.abc import Mapping

from core.records import Json, Record
from core.search.space import Choice, Space


class Knob(Record):
    """One LLVM option. All shipped ones are exact: they never change a program's results."""

    name: str
    values: tuple[str, ...]
    about: str
    implies: tuple[str, ...] = ()
    """Options that must go with it, to keep results exact."""

    def options(self, value: str) -> tuple[str, ...]:
        """Return the LLVM options that set this knob to `value`."""
        return (f"-{self.name}={value}", *self.implies)


# A forced width makes the vectorizer assume that reordering floating-point sums is allowed; this keeps results exact.
_EXACT = ("-hints-allow-reordering=false",)

KNOBS = (
    Knob(name="inline-threshold", values=("0", "75", "500", "1000"), about="how large a callee may be inlined"),
    Knob(name="unroll-threshold", values=("50", "600", "1200"), about="code size up to which loops are fully unrolled"),
    Knob(name="unroll-partial-threshold", values=("50", "300", "800"), about="size up to which loops partly unroll"),
    Knob(name="unroll-runtime", values=("0",), about="unroll loops whose trip count is known only at run time"),
    Knob(name="enable-unroll-and-jam", values=("1",), about="unroll outer loops and fuse the inner copies"),
    Knob(name="force-vector-width", values=("1", "2", "4", "8", "16"), about="SIMD lanes of loops", implies=_EXACT),
    Knob(name="force-vector-interleave", values=("1", "2", "4", "8"), about="vector iterations in flight"),
    Knob(
        name="vectorizer-maximize-bandwidth",
        values=("1",),
        about="choose lanes by the narrowest type of the loop, not the widest",
    ),
    Knob(
        name="prefer-predicate-over-epilogue",
        values=("predicate-else-scalar-epilogue",),
        about="mask the loop's tail instead of a scalar rest loop",
    ),
    Knob(name="slp-threshold", values=("-10", "-5", "5", "10"), about="gain demanded of straight-line vectorization"),
    Knob(name="enable-loopinterchange", values=("1",), about="swap nested loops for better locality"),
    Knob(name="enable-loop-distribute", values=("1",), about="split loops so that one part vectorizes"),
    Knob(name="enable-gvn-hoist", values=("1",), about="hoist common expressions out of branches"),
    Knob(name="two-entry-phi-node-folding-threshold", values=("0", "8", "16"), about="branches turned into selects"),
    Knob(name="x86-cmov-converter", values=("0",), about="turn conditional moves back into branches"),
    Knob(name="disable-lsr", values=("1",), about="no strength reduction of loop induction variables"),
    Knob(name="misched-prera-direction", values=("topdown", "bottomup"), about="order of instruction scheduling"),
    Knob(name="align-all-nofallthru-blocks", values=("4", "5"), about="align jump targets to 2^N bytes"),
)


def available(options: frozenset[str]) -> tuple[tuple[Knob, ...], dict[str, str]]:
    """Return the knobs that the compiler accepts, and the missing ones with the reason."""
    missing = {k.name: "the installed compiler has no such option" for k in KNOBS if k.name not in options}
    return tuple(k for k in KNOBS if k.name not in missing), missing


def space(knobs: tuple[Knob, ...]) -> Space:
    """Return the search space over these knobs; a knob that is left out stays as -O3 has it."""
    return Space(fields={k.name: Choice(values=k.values, about=k.about, optional=True) for k in knobs})


def flags(knobs: tuple[Knob, ...], payload: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the compiler arguments of a payload, in catalogue order, each implied option once."""
    options = [o for k in knobs if k.name in payload for o in k.options(str(payload[k.name]))]
    return tuple(word for option in dict.fromkeys(options) for word in ("-mllvm", option))
