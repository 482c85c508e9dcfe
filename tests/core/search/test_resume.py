import pytest

from core.errors import ComplabError, InfraError
from core.search.advisors.random import RandomAdvisor
from tests.core.search.searches import ADVISORS, run_search, stable, vary
from tests.core.search.toy import (
    BEST,
    MemoryRun,
    Scripted,
    ToyCompiler,
    ToyJudge,
    ToyProblem,
)


@pytest.mark.parametrize("advisor", ADVISORS, ids=lambda a: a.name)
@pytest.mark.parametrize("kept", [1, 2, 5, 9, -1])
def test_a_resumed_search_equals_an_uninterrupted_one_and_repeats_no_work(advisor, kept):
    outcome, whole = run_search(advisor, run=MemoryRun(3))
    part = MemoryRun(3)
    part.lines = list(whole.lines[:kept])
    judge = ToyJudge()
    resumed, _ = run_search(advisor, run=part, judge=judge)
    assert stable(part.lines) == stable(whole.lines)
    assert (resumed.chosen, resumed.trial, resumed.proof) == (outcome.chosen, outcome.trial, outcome.proof)
    done = {t.candidate.key for t in whole.lines[:kept] if t.candidate is not None}
    assert not done & {key for key, stage, _ in judge.checked if stage == "screen"}


def test_an_interrupt_leaves_a_run_that_goes_on():
    def interrupt(x):
        if len(run.lines) == 5:
            raise KeyboardInterrupt

    run = MemoryRun(3)
    with pytest.raises(KeyboardInterrupt):
        run_search(RandomAdvisor(), run=run, compiler=ToyCompiler(interrupt))
    run_search(RandomAdvisor(), run=run)
    assert stable(run.lines) == stable(run_search(RandomAdvisor(), run=MemoryRun(3))[1].lines)


def test_trials_that_met_errors_of_our_own_are_tried_again_by_the_same_command():
    def fail(x):
        if len(run.lines) >= 4:
            raise InfraError("the tool is gone", "Bring it back.")

    run = MemoryRun(3)
    with pytest.raises(InfraError, match="3 trials in a row"):
        run_search(RandomAdvisor(), run=run, compiler=ToyCompiler(fail))
    run_search(RandomAdvisor(), run=run)
    assert any(trial.verdict.reason == "infra_error" for trial in run.lines)
    whole = run_search(RandomAdvisor(), run=MemoryRun(3))[1]
    resumed, uninterrupted = ({trial.index: trial for trial in lines} for lines in (run.lines, whole.lines))
    assert stable(resumed.values()) == stable(uninterrupted.values())


def test_a_finished_run_answers_at_once():
    outcome, run = run_search(RandomAdvisor())
    compiler = ToyCompiler()
    assert run_search(RandomAdvisor(), run=run, compiler=compiler)[0] == outcome
    assert compiler.built == 0


def test_a_differing_proposal_on_resume_is_an_error_that_names_the_first_difference():
    _, run = run_search(Scripted([[vary(unroll=3), vary(width=4)]]))
    run.outcome = None
    with pytest.raises(ComplabError, match=r"Trial 2 of toy .*: payload\.width was 4 and is 2 now\..*--new"):
        run_search(Scripted([[vary(unroll=3), vary(width=2)]]), run=run)


def test_the_evidence_of_the_first_start_is_shown_again():
    seen = []

    class Nosy(Scripted):
        def propose(self, view, s):
            seen.append(view.evidence)
            yield [BEST]

    class Changing(ToyProblem):
        def describe(self, s):
            return super().describe(s).model_copy(update={"channels": {"n": len(seen)}})

    _, run = run_search(Nosy([]), problem=Changing())
    run.outcome = None
    run_search(Nosy([]), problem=Changing(), run=run)
    assert seen[0] == seen[1]
