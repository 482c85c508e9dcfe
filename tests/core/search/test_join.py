import pytest

from core.search.acceptance import split
from core.search.contract import Budget
from core.search.loop import Terms, search
from tests.core.search.toy import BEST, MemoryRun, Scripted, ToyCompiler, ToyJudge, Whole, services


class Good(Scripted):
    """Proposes the best payload of whatever part it is asked about."""

    def propose(self, view, s):
        yield [BEST]


def compose(whole, judge=None, evaluations=12, run=None):
    run = run or MemoryRun()
    judge = judge or ToyJudge()
    budget = Budget(evaluations=evaluations)
    return search(whole, Good([]), ToyCompiler(), judge, budget, run, services(), terms=Terms()), run


def kept_parts(outcome):
    return {name for name, payload in outcome.chosen.provenance["parts"].items() if payload == BEST.payload}


def test_the_winners_of_all_parts_are_joined_and_proven_as_a_whole():
    outcome, run = compose(Whole())
    assert kept_parts(outcome) == {f"part{i}" for i in range(6)}
    assert outcome.chosen.problem == Whole().id
    assert outcome.proof.stage == "prove"
    assert len(run.recorded(Whole().id)) == 2


@pytest.mark.parametrize("spoilers", [{0}, {5}, {2, 3}, {0, 1, 2, 4, 5}])
@pytest.mark.parametrize("where", ["spoilers", "hidden_spoilers"])
def test_parts_that_spoil_the_whole_go_back_to_their_default(spoilers, where):
    outcome, run = compose(Whole(**{where: frozenset(spoilers)}))
    assert kept_parts(outcome) == {f"part{i}" for i in range(6)} - {f"part{i}" for i in spoilers}
    assert len(run.recorded(Whole().id)) <= 2 + 2 * 3 * len(spoilers)


def test_a_whole_that_every_part_spoils_falls_back():
    outcome, run = compose(Whole(spoilers=frozenset(range(6))))
    assert outcome.trial is None
    assert "wrong_output" in outcome.fallback
    assert outcome.chosen == run.recorded(Whole().id)[0].candidate


def test_parts_without_a_winner_leave_nothing_to_join():
    judge = ToyJudge(hidden_fault=lambda payload: True)
    outcome, _ = compose(Whole(n=2), judge)
    assert outcome.fallback.startswith("no part was proven faster (part0: no candidate was proven faster")


def test_the_proofs_of_joins_share_the_error_rate():
    judge = ToyJudge()
    compose(Whole(hidden_spoilers=frozenset({1, 4})), judge)
    of_parts, of_joins = 6, [a for stage, a in judge.alphas if stage == "prove"][6:]
    assert len(judge.alphas) > 2 * of_parts
    assert sum(of_joins) <= 0.01


def test_costs_are_summed_over_the_parts():
    outcome, run = compose(Whole(spoilers=frozenset({3})))
    assert outcome.spent.evaluations == 6
    assert outcome.free.evaluations == sum(t.free.evaluations for t in _latest(run))
    assert outcome.spent.proposals == 6


def test_a_composite_resumes_to_the_same_outcome():
    whole = Whole(spoilers=frozenset({1}))
    outcome, full = compose(whole)
    for kept in range(1, len(full.lines), 3):
        part = MemoryRun()
        part.lines = full.lines[:kept]
        again, _ = compose(whole, run=part)
        assert (again.chosen, again.trial, again.proof) == (outcome.chosen, outcome.trial, outcome.proof)
        assert [(t.problem, t.index, t.key) for t in part.lines] == [(t.problem, t.index, t.key) for t in full.lines]


def test_the_budget_is_split_without_loss():
    shares = split(Budget(evaluations=8, wall_s=9.0), 3)
    assert [b.evaluations for b in shares] == [3, 3, 2]
    assert sum(b.most_proposals for b in shares) == 32
    assert [b.wall_s for b in shares] == [3.0] * 3
    assert split(Budget(evaluations=1), 2) == [Budget(evaluations=1, proposals=2), None]


def _latest(run):
    return {(t.problem, t.index): t for t in run.lines}.values()
