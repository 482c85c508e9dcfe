import contextlib

import pytest

from core.errors import ComplabError, InfraError
from core.search.advisors.adversarial import AdversarialAdvisor
from core.search.advisors.evolution import EvolutionAdvisor
from core.search.advisors.random import RandomAdvisor
from core.search.advisors.replay import ReplayAdvisor
from core.search.contract import Budget, Proposal, Trial, Verdict
from core.search.docket import derive_seed
from core.search.loop import Terms, search
from tests.core.search.searches import ADVISORS, EXPERT, run_search, stable, vary
from tests.core.search.toy import (
    BEST,
    BEST_RATIO,
    DEFAULT,
    Flaky,
    MemoryRun,
    Scripted,
    ToyCompiler,
    ToyJudge,
    ToyProblem,
    services,
    true_ratio,
)


def test_the_best_proven_candidate_is_kept_with_its_proof():
    outcome, run = run_search(Scripted([[vary(width=4), BEST]]))
    assert (outcome.trial, outcome.fallback) == (2, None)
    assert outcome.proof.stage == "prove"
    assert outcome.proof.low < BEST_RATIO < outcome.proof.high
    assert run.outcome == outcome


def test_nothing_proven_keeps_the_baseline_and_says_why():
    outcome, run = run_search(Scripted([[vary(width=2), vary(passes=["dse"])]]))
    assert outcome.trial is None
    assert outcome.chosen == run.lines[0].candidate
    assert outcome.fallback == "no candidate was screened as faster: 1 slower, 1 wrong_output"


def test_an_advisor_without_proposals_keeps_the_baseline():
    assert run_search(Scripted([]))[0].fallback == "nothing was proposed"
    assert run_search(Scripted([[]]))[0].fallback == "nothing was proposed"


def test_three_finalists_are_proven_on_unseen_seeds_at_a_third_of_alpha():
    judge = ToyJudge()
    _, run = run_search(RandomAdvisor(), judge=judge, evaluations=20, terms=Terms(alpha=0.03))
    seeds = {stage: {seed for _, s, seed in judge.checked if s == stage} for stage in ("screen", "prove")}
    assert not seeds["screen"] & seeds["prove"]
    assert [a for stage, a in judge.alphas if stage == "prove"] == pytest.approx([0.01] * 3)
    assert {a for stage, a in judge.alphas if stage == "screen"} == {0.03}
    assert sum(t.hidden is not None for t in run.lines) == 3


def test_seeds_of_the_proof_never_equal_those_of_the_screening():
    screen = {derive_seed(root, "screen", "p") for root in range(500)}
    prove = {derive_seed(root, "prove", "p") for root in range(500)}
    assert not screen & prove
    assert max(screen | prove) < 2**31


def test_a_candidate_wrong_on_hidden_inputs_is_not_kept():
    judge = ToyJudge(hidden_fault=lambda payload: payload["width"] == 8)
    outcome, _ = run_search(Scripted([[BEST]]), judge=judge)
    assert outcome.trial is None
    assert "trial 1 failed on hidden inputs (wrong_output" in outcome.fallback
    outcome, _ = run_search(Scripted([[BEST, vary(unroll=4)]]), judge=judge)
    assert outcome.trial == 2


def test_a_suspect_proof_is_not_kept():
    outcome, _ = run_search(Scripted([[BEST]]), judge=ToyJudge(flags=("suspect",)))
    assert outcome.trial is None
    assert "faster, but suspect," in outcome.fallback


def test_screening_luck_does_not_survive_the_proof():
    """Winner's curse: with nothing truly faster, some of 40 candidates screen as faster at a loose level."""
    screened = kept = 0
    for seed in range(60):
        outcome, run = run_search(
            RandomAdvisor(), problem=ToyProblem(flat=True), run=MemoryRun(seed), evaluations=40, terms=Terms(alpha=0.05)
        )
        screened += any(t.screen and t.screen.decision == "faster" for t in run.lines)
        kept += outcome.trial is not None
    assert screened > 10
    assert kept <= 7  # 3 are expected at 5%; 8 or more have a chance below 2%


def test_the_proven_ratio_is_not_inflated_by_the_selection():
    errors = []
    for seed in range(40):
        outcome, run = run_search(RandomAdvisor(), run=MemoryRun(seed), judge=ToyJudge(noise=0.05), evaluations=30)
        if outcome.trial is not None:
            truth = true_ratio(run.recorded(ToyProblem().id)[outcome.trial].proposal.payload)
            errors.append(not outcome.proof.low <= truth <= outcome.proof.high)
    assert len(errors) >= 30
    assert sum(errors) <= 3


@pytest.mark.parametrize("advisor", ADVISORS, ids=lambda a: a.name)
def test_no_advisor_exceeds_its_budget(advisor):
    judge = ToyJudge()
    outcome, run = run_search(advisor, judge=judge, evaluations=10)
    distinct = {key for key, stage, _ in judge.checked if stage == "screen"}
    assert outcome.spent.evaluations == len(distinct) - 1 <= 10
    assert outcome.spent.proposals == max(run.recorded(ToyProblem().id)) <= 40
    assert outcome.free.evaluations == 1 + sum(stage == "prove" for _, stage, _ in judge.checked)


@pytest.mark.parametrize("advisor", ADVISORS, ids=lambda a: a.name)
def test_the_same_seed_gives_the_same_trials(advisor):
    _, first = run_search(advisor, run=MemoryRun(7))
    _, second = run_search(advisor, run=MemoryRun(7))
    _, other = run_search(RandomAdvisor(), run=MemoryRun(8))
    assert stable(first.lines) == stable(second.lines)
    assert stable(other.lines) != stable(first.lines)


def test_duplicates_cost_a_proposal_but_no_evaluation():
    advisor = Scripted(
        [[BEST, BEST, DEFAULT, vary(passes=["sroa"]), vary(passes=["gvn", "licm"]), vary(passes=["licm", "gvn"])]]
    )
    judge = ToyJudge()
    outcome, run = run_search(advisor, judge=judge)
    trials = run.recorded(ToyProblem().id)
    assert [trials[i].duplicate_of for i in range(7)] == [None, None, 1, 0, 0, None, 5]
    assert (outcome.spent.proposals, outcome.spent.evaluations) == (6, 2)
    assert trials[2].screen == trials[1].screen
    assert sum(stage == "screen" for _, stage, _ in judge.checked) == 3


def test_invalid_proposals_cost_proposals_up_to_four_times_the_evaluations():
    outcome, run = run_search(Scripted([[vary(unrol=3)]] * 100), evaluations=5)
    assert (outcome.spent.proposals, outcome.spent.evaluations) == (20, 0)
    assert run.lines[1].verdict.message == "unknown field 'unrol': did you mean 'unroll'?"
    assert "20 invalid" in outcome.fallback


def test_an_advisor_is_asked_for_nothing_once_its_budget_is_spent():
    asked = []

    class Counting(Scripted):
        def propose(self, view, s):
            for n in range(9):
                asked.append(n)
                yield [vary(unroll=n)]

    run_search(Counting([]), evaluations=3)
    assert len(asked) == 4  # unroll 0 is the baseline itself


def test_a_wall_time_budget_ends_the_search():
    outcome, _ = run_search(RandomAdvisor(), judge=ToyJudge(sleep_s=0.01), evaluations=1000, wall_s=0.05)
    assert 1 <= outcome.spent.evaluations <= 5


def test_a_rejected_baseline_is_a_readable_error_and_is_not_recorded():
    problem = ToyProblem(default=vary(passes=["dse"]))
    run = MemoryRun()
    with pytest.raises(ComplabError, match=r"The baseline of toy was rejected \(wrong_output\): 42 was expected"):
        run_search(RandomAdvisor(), problem=problem, run=run)
    assert run.lines == []


def test_an_invalid_baseline_is_named():
    with pytest.raises(ComplabError, match=r"field .unroll.: 99 is outside 0\.\.8"):
        run_search(RandomAdvisor(), problem=ToyProblem(default=vary(unroll=99)))


def test_our_own_errors_are_retried_and_not_charged_to_the_candidate():
    _, run = run_search(Scripted([[BEST]]), compiler=ToyCompiler(Flaky(2)))
    assert run.lines[1].verdict.accepted
    assert [e.kind for e in run.events].count("retry") == 4


def test_an_error_of_our_own_that_stays_is_recorded_and_stops_the_search_after_three():
    def broken(x):
        if x != DEFAULT:
            raise InfraError("the linker is gone")

    run = MemoryRun()
    with pytest.raises(InfraError, match=r"3 trials in a row .*the linker is gone"):
        run_search(RandomAdvisor(), run=run, compiler=ToyCompiler(broken))
    assert [t.verdict.reason for t in run.lines[1:]] == ["infra_error"] * 3
    assert all(t.cost.evaluations == 0 for t in run.lines)


def test_a_proposal_that_met_our_error_may_come_again():
    class Once:
        failed = False

        def __call__(self, x):
            if x == BEST and not self.failed:
                self.failed = True
                raise InfraError("busy")

    outcome, run = run_search(Scripted([[BEST], [BEST]]), compiler=ToyCompiler(Once()), terms=Terms(retries=0))
    assert (run.lines[1].verdict.reason, run.lines[2].verdict.accepted) == ("infra_error", True)
    assert outcome.trial == 2


def test_a_failing_advisor_is_named_and_the_run_goes_on():
    class Failing(Scripted):
        def propose(self, view, s):
            yield [BEST]
            raise ZeroDivisionError("oops")

    run = MemoryRun()
    with pytest.raises(ComplabError, match="Advisor scripted failed on toy: ZeroDivisionError: oops"):
        run_search(Failing([]), run=run)
    assert len(run.lines) == 2


def test_a_batch_that_is_no_list_is_an_error():
    with pytest.raises(ComplabError, match="gave a Proposal where a list of proposals belongs"):
        run_search(Scripted([BEST]))


def test_an_advisor_that_does_not_end_is_noted_and_harmless():
    class Clinging(Scripted):
        def propose(self, view, s):
            with contextlib.suppress(GeneratorExit):
                yield [BEST]
            yield [BEST]

    outcome, run = run_search(Clinging([]), evaluations=1)
    assert outcome.trial == 1
    assert "advisor" in {e.kind for e in run.events}


def test_an_advisor_gets_no_clock():
    class Timing(Scripted):
        def propose(self, view, s):
            yield [Proposal(payload={"t": s.measure})]

    with pytest.raises(ComplabError, match="asked for the clock"):
        run_search(Timing([]))


def test_a_judge_that_ignores_the_error_rate_is_refused():
    class Loose(ToyJudge):
        def compare(self, *args, alpha):
            return super().compare(*args, alpha=0.2)

    with pytest.raises(ValueError, match=r"level 0\.99"):
        run_search(Scripted([[BEST]]), judge=Loose())


def test_a_candidate_that_misbehaves_while_it_is_timed_is_rejected():
    class Strict(ToyJudge):
        def compare(self, p, base, c, stage, seed, s, *, alpha):
            if c.provenance["payload"] == BEST.payload and stage in self.stages:
                return Verdict(accepted=False, reason="nondeterministic", message="the output changed while timed")
            return super().compare(p, base, c, stage, seed, s, alpha=alpha)

    Strict.stages = ("screen",)
    outcome, run = run_search(Scripted([[BEST]]), judge=Strict())
    assert (run.lines[1].verdict.reason, run.lines[1].screen) == ("nondeterministic", None)
    Strict.stages = ("prove",)
    outcome, run = run_search(Scripted([[BEST]]), judge=Strict())
    assert outcome.trial is None
    assert (run.lines[2].verdict.accepted, run.lines[2].hidden.reason) == (True, "nondeterministic")


@pytest.mark.parametrize("flat", [False, True])
def test_a_hostile_advisor_never_changes_what_is_right(flat):
    kept = 0
    for seed in range(12):
        run = MemoryRun(seed)
        outcome, _ = run_search(
            AdversarialAdvisor(), problem=ToyProblem(flat=flat), run=run, evaluations=25, terms=Terms(alpha=0.01)
        )
        for trial in run.lines:
            assert Trial.model_validate_json(trial.model_dump_json()) == trial
            assert not trial.verdict.accepted or "dse" not in trial.proposal.payload["passes"]
            assert trial.screen is None or trial.screen.ratio < 2
        kept += outcome.trial is not None
        if outcome.trial is not None and not flat:
            chosen = run.recorded(ToyProblem(flat=flat).id)[outcome.trial]
            assert true_ratio(chosen.proposal.payload) > 1
    assert kept <= 1 if flat else kept >= 5


def test_evolution_beats_random_at_the_same_budget():
    def best(advisor):
        ratios = []
        for seed in range(10):
            _, run = run_search(advisor, run=MemoryRun(seed), evaluations=60)
            ratios.append(max(true_ratio(t.proposal.payload) for t in run.lines if t.verdict.accepted))
        return sum(ratios) / len(ratios)

    assert best(EvolutionAdvisor()) > best(RandomAdvisor()) + 0.01


def test_the_expert_applies_what_the_evidence_calls_for_and_combines_what_helped():
    _, run = run_search(EXPERT, evaluations=40)
    first, wide, four = (t.proposal for t in run.lines[1:4])
    assert first.rationale == "wide is good; four is a good number; wrong advice"
    assert wide.payload == {**DEFAULT.payload, "width": 8}
    assert four.payload == {**DEFAULT.payload, "unroll": 4}
    assert {**DEFAULT.payload, "width": 8, "unroll": 4} in [t.proposal.payload for t in run.lines]
    assert max(true_ratio(t.proposal.payload) for t in run.lines if t.verdict.accepted) == pytest.approx(
        BEST_RATIO, rel=0.01
    )


def test_replay_repeats_the_proposals_of_a_run():
    _, first = run_search(RandomAdvisor())
    _, second = run_search(ReplayAdvisor(list(first.recorded(ToyProblem().id).values())))
    payloads = [[t.proposal.payload for t in run.lines] for run in (first, second)]
    assert payloads[0] == payloads[1]


def test_costs_of_the_model_are_charged_to_the_batch_they_led_to():
    from types import SimpleNamespace

    usage = SimpleNamespace(calls=0, tokens=0, usd=0.0)
    llm = SimpleNamespace(budget=SimpleNamespace(spending=SimpleNamespace(would_have=usage)))

    class Talking(Scripted):
        def propose(self, view, s):
            for batch in ([BEST, vary(unroll=3)], [vary(unroll=2)]):
                usage.calls, usage.tokens, usage.usd = usage.calls + 1, usage.tokens + 100, usage.usd + 0.5
                yield batch
            usage.calls += 1

    run = MemoryRun()
    outcome = search(ToyProblem(), Talking([]), ToyCompiler(), ToyJudge(), Budget(evaluations=9), run, services(llm))
    assert [t.cost.tokens for t in run.lines[:4]] == [0, 100, 0, 100]
    assert (outcome.spent.llm_calls, outcome.spent.tokens, outcome.spent.usd) == (3, 200, 1.0)
