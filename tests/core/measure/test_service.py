import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from core.errors import BadInput
from core.measure.calibrate import calibrate, control, rate
from core.measure.processes import WholeProcesses
from core.measure.samples import Block, BlockPlan
from core.measure.service import Measure, MeasureSettings, StageSettings, plan_comparison
from core.records import Json, digest_bytes
from core.sandbox.policy import Sandbox

CAPS = StageSettings(wall_s=6.0, stretch_s=60.0, first=8, last=20, looks=5, pairs=25)


@pytest.fixture(autouse=True)
def _idle_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (0.1, 0.1, 0.1))


@dataclass
class Synthetic:
    """Arms whose times are drawn: log-normal noise around a true ratio, by clock."""

    gain: float = 0.0
    wall_gain: float | None = None
    noise: float = 0.005
    layout: float = 0.0
    sample_s: float = 0.02
    idle: float = 0.0
    layouts: int = 64
    repeatable: bool = False
    extra_threads: bool = False
    plans: list[BlockPlan] = field(default_factory=list)

    def describe(self) -> dict[str, Json]:
        return {"mode": "synthetic"}

    def take(self, box: Sandbox, plans: Sequence[BlockPlan]) -> list[Block]:
        self.plans += plans
        return [self._block(plan) for plan in plans]

    def _block(self, plan: BlockPlan) -> Block:
        rng = np.random.default_rng([plan.seed, plan.index, 5])

        def times(gain: float) -> np.ndarray:
            noise = np.exp(rng.normal(0, self.noise, (plan.pairs, 2)))
            luck = np.exp(self.layout * rng.normal(0, 1))
            return self.sample_s * plan.repeats * noise * np.array([1 + gain, luck])

        cpu = times(self.gain)
        wall = cpu if self.wall_gain is None else times(self.wall_gain)
        return Block(
            index=plan.index,
            wall_s=wall / (1 - self.idle),
            cpu_s=cpu,
            thread_s=cpu,
            switches=np.zeros((plan.pairs, 2), np.int64),
            extra_threads=self.extra_threads,
        )


class Memory:
    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        self.blobs[digest_bytes(data)] = data
        return digest_bytes(data)


def compare(measure: Measure, source: Synthetic, **other: object):  # type: ignore[no-untyped-def]
    arguments = {"baseline": "a" * 64, "candidate": "b" * 64, "stage": "prove", "seed": 3, **other}
    return measure.compare(source, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(("gain", "decision"), [(0.05, "faster"), (-0.05, "slower"), (0.0, "same")])
def test_decision_and_interval_agree_with_the_truth(measure: Measure, gain: float, decision: str) -> None:
    found = compare(measure, Synthetic(gain=gain))
    assert found.decision == decision
    assert found.low <= 1 + gain <= found.high
    assert found.level == 0.99
    assert not found.modelled
    assert found.flags == ()


def test_undecided_stays_undecided_at_the_cap(measure: Measure) -> None:
    source = Synthetic(layout=0.1)
    found = compare(measure, source)
    assert found.decision == "undecided"
    assert found.low < 1 < found.high
    assert len({plan.index for plan in source.plans}) == 20


def test_every_block_has_its_own_index_and_a_clear_win_stops_early(measure: Measure) -> None:
    source = Synthetic(gain=0.3)
    compare(measure, source)
    assert [plan.index for plan in source.plans[1:]] == list(range(8)), "after the warm-up"


def test_stages_and_seeds_draw_differently_and_each_repeats_itself(measure: Measure) -> None:
    ratios = [
        compare(measure, Synthetic(), stage=stage, seed=seed).ratio for stage in ("screen", "prove") for seed in (1, 2)
    ]
    again = compare(measure, Synthetic(), stage="prove", seed=2).ratio
    assert len(set(ratios)) == 4
    assert again == ratios[-1]


def test_corrected_alpha_widens_the_interval(measure: Measure) -> None:
    plain, corrected = compare(measure, Synthetic()), compare(measure, Synthetic(), alpha=0.01 / 3)
    assert corrected.low < plain.low
    assert corrected.level == pytest.approx(1 - 0.01 / 3)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0])
def test_alpha_that_is_no_probability_is_refused(measure: Measure, alpha: float) -> None:
    with pytest.raises(BadInput, match="alpha"):
        compare(measure, Synthetic(), alpha=alpha)


@pytest.mark.parametrize(
    ("source", "flag"),
    [
        (Synthetic(gain=0.3, wall_gain=-0.1), "suspect"),
        (Synthetic(gain=0.3, wall_gain=0.0), "suspect"),
        (Synthetic(extra_threads=True), "suspect"),
        (Synthetic(idle=0.5), "loaded_machine"),
        (Synthetic(sample_s=2e-4), "short_samples"),
        (Synthetic(layouts=1), "few_layouts"),
        (Synthetic(gain=0.035, layout=0.035, noise=0.001), "layout_dependent"),
    ],
)
def test_flag_is_raised_for_its_cause(measure: Measure, source: Synthetic, flag: str) -> None:
    assert flag in compare(measure, source, seed=4).flags


def test_load_that_slows_the_wall_alike_is_not_suspect(measure: Measure) -> None:
    assert "suspect" not in compare(measure, Synthetic(gain=0.1, wall_gain=0.1, idle=0.4)).flags


def test_noise_of_the_pairs_alone_is_not_layout_dependence(measure: Measure) -> None:
    found = [compare(measure, Synthetic(gain=0.025, noise=0.03, sample_s=0.05), seed=seed) for seed in range(12)]
    decided = [one for one in found if one.decision == "faster"]
    assert len(decided) >= 3
    assert not any("layout_dependent" in one.flags for one in decided)


def test_loaded_machine_is_said_by_its_load_average(measure: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (1e3, 0.0, 0.0))
    assert "loaded_machine" in compare(measure, Synthetic()).flags


def test_raw_samples_are_stored_without_pickle(box: Sandbox, tmp_path: Path) -> None:
    store = Memory()
    measure = Measure(box, store, MeasureSettings(lock=tmp_path / "lock"))
    found = compare(measure, Synthetic(gain=0.05))
    with np.load(io.BytesIO(store.blobs[found.samples]), allow_pickle=False) as arrays:
        assert arrays["cpu_s"].shape == (found.pairs, 2)
        logs = np.log(arrays["cpu_s"])
        blocks = arrays["block"]
    medians = [np.median((logs[:, 0] - logs[:, 1])[blocks == index]) for index in np.unique(blocks)]
    assert np.exp(np.mean(medians)) == pytest.approx(found.ratio)


def test_repeats_make_a_sample_of_about_two_milliseconds(measure: Measure) -> None:
    source = Synthetic(repeatable=True, sample_s=3e-6)
    compare(measure, source)
    assert 1e-3 < source.plans[-1].repeats * 3e-6 < 3e-3


@pytest.mark.parametrize(
    ("sample_s", "layouts", "blocks", "pairs", "decisive"),
    [
        (0.002, 64, 20, 25, True),
        (0.02, 64, 20, 7, True),
        (0.02, 6, 6, 25, True),
        (0.02, 1, 20, 7, True),
        (0.02, 3, 5, 25, True),
        (0.25, 64, 12, 1, True),
        (1.0, 64, 8, 1, True),
        (5.0, 64, 6, 1, True),
        (10.0, 64, 2, 1, False),
        (100.0, 64, 2, 1, False),
    ],
)
def test_plan_fits_the_length_of_the_program(
    sample_s: float, layouts: int, blocks: int, pairs: int, decisive: bool
) -> None:
    plan = plan_comparison((sample_s, 1), CAPS, Synthetic(layouts=layouts))
    assert (plan.looks[-1], plan.pairs, plan.decisive) == (blocks, pairs, decisive)


def test_too_long_programs_are_honestly_undecided(measure: Measure) -> None:
    found = compare(measure, Synthetic(gain=0.5, sample_s=100.0, noise=1e-4))
    assert found.decision == "undecided"
    assert found.low < 1.5 < found.high


def test_calibration_counts_wrong_decisions(measure: Measure) -> None:
    honest = calibrate(measure, Synthetic(), controls=5, stage="screen", seed=1)
    biased = calibrate(measure, Synthetic(gain=0.1), controls=5, stage="screen", seed=1)
    assert (honest.wrong, biased.wrong) == (0, 5)
    assert honest.wrong_rate[0] == 0
    assert biased.wrong_rate[1] == 1
    assert biased.spread == pytest.approx(np.log(1.1), rel=0.1)
    assert len(honest.comparisons) == 5


def test_control_splits_the_baselines_layouts_between_the_arms() -> None:
    source = WholeProcesses(baseline=(b"1", b"2", b"3", b"4"), candidate=(b"x",), expected=b"")
    found = control(source)
    assert (found.baseline, found.candidate) == ((b"1", b"2"), (b"3", b"4"))
    single = control(WholeProcesses(baseline=(b"1",), candidate=(b"x",), expected=b""))
    assert (single.baseline, single.candidate) == ((b"1",), (b"1",))


def test_rate_is_clopper_pearsons() -> None:
    assert rate(0, 60).interval == pytest.approx((0.0, 0.0596), abs=1e-3)
    assert rate(60, 60).interval == pytest.approx((0.9404, 1.0), abs=1e-3)
