"""The expert: rules that read remarks and IR features, each with its reason."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from core.records import Json
from core.search.advisors.bases import ExpertAdvisor, ExpertRule
from core.search.contract import Evidence

Setting = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules ask of the evidence."""

    remarks: tuple[Mapping[str, Json], ...]
    features: Mapping[str, Json]

    @staticmethod
    def of(evidence: Evidence) -> "Facts":
        """Return the facts of an evidence record; absent channels are empty."""
        remarks = evidence.channels.get("remarks", [])
        features = evidence.channels.get("features", {})
        assert isinstance(remarks, list)
        assert isinstance(features, dict)
        return Facts(tuple(r for r in remarks if isinstance(r, dict)), features)

    def seen(self, compiler_pass: str, *names: str) -> int:
        """Return how often a pass gave one of these remarks."""
        return sum(int(str(r["count"])) for r in self.remarks if r["pass"] == compiler_pass and r["name"] in names)

    def feature(self, name: str) -> int:
        """Return an IR feature's count."""
        return int(str(self.features.get(name, 0)))


@dataclass(frozen=True, slots=True)
class Rule:
    """When the facts call for it, try a setting."""

    setting: Setting
    reason: str
    when: Callable[[Facts], bool]


RULES = (
    Rule(
        {"vectorizer-maximize-bandwidth": "1"},
        "8- or 16-bit data is widened in loops: lanes chosen by the narrow type hold more elements",
        lambda f: f.feature("narrow_loads") > 0 or f.feature("widenings") > 0,
    ),
    Rule(
        {"unroll-threshold": "1200"},
        "a floating-point sum keeps its loop from being vectorized; unrolled fully, the loop around it can be",
        lambda f: f.seen("loop-vectorize", "CantReorderFPOps") > 0,
    ),
    Rule(
        {"unroll-threshold": "600"},
        "loops were only partly unrolled at the default size limit",
        lambda f: f.seen("loop-unroll", "PartialUnrolled") > 0,
    ),
    Rule(
        {"inline-threshold": "1000"},
        "calls stayed because the callee was too costly to inline",
        lambda f: f.seen("inline", "TooCostly", "NotInlined") > 0,
    ),
    Rule(
        {"force-vector-interleave": "4"},
        "vectorized loops may hide latency with more iterations in flight",
        lambda f: f.seen("loop-vectorize", "Vectorized") > 0,
    ),
    Rule(
        {"force-vector-width": "8"},
        "vectorized loops may gain from more lanes than the cost model chose",
        lambda f: f.seen("loop-vectorize", "Vectorized") > 0,
    ),
    Rule(
        {"slp-threshold": "-5"},
        "straight-line vectorization was judged just not beneficial",
        lambda f: f.seen("slp-vectorizer", "NotBeneficial") > 0,
    ),
    Rule(
        {"slp-threshold": "10"},
        "straight-line vectorization may cost more in shuffles than it gains",
        lambda f: f.seen("slp-vectorizer", "StoresVectorized", "VectorizedList", "VectorizedHorizontalReduction") > 0,
    ),
    Rule(
        {"x86-cmov-converter": "0", "two-entry-phi-node-folding-threshold": "16"},
        "many branches and selects: keep conditional moves for data-dependent choices",
        lambda f: f.feature("branches") + f.feature("selects") > 20,
    ),
    Rule(
        {"enable-loopinterchange": "1"},
        "nested loops with strided accesses may be swapped",
        lambda f: f.seen("licm", "LoadWithLoopInvariantAddressInvalidated") > 0,
    ),
    Rule(
        {"enable-gvn-hoist": "1"},
        "the same loads recur on several paths",
        lambda f: f.seen("gvn", "LoadClobbered") > 5,
    ),
    Rule(
        {"unroll-threshold": "50", "unroll-runtime": "0"},
        "registers were spilled in loops: smaller loops need fewer",
        lambda f: f.seen("regalloc", "LoopSpillReloadCopies", "SpillReloadCopies") > 0,
    ),
    Rule({"misched-prera-direction": "bottomup"}, "another instruction order, cheap to try", lambda f: True),
    Rule({"disable-lsr": "1"}, "address arithmetic may be better left alone", lambda f: True),
    Rule({"enable-unroll-and-jam": "1"}, "outer loops may share loads", lambda f: f.feature("phis") > 2),
    Rule({"align-all-nofallthru-blocks": "5"}, "aligned jump targets, cheap to try", lambda f: True),
)


def expert() -> ExpertAdvisor:
    """Return the advisor that tries what the rules call for, then combinations and steps around what has won."""
    return ExpertAdvisor(rules=[_advice(rule) for rule in RULES])


def _advice(rule: Rule) -> ExpertRule:
    return ExpertRule(
        when=lambda evidence: rule.when(Facts.of(evidence)), propose=lambda _: rule.setting, reason=rule.reason
    )
