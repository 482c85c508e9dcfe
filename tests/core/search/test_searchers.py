"""The advisors that search: they stay inside the space, repeat nothing, and learn from what they are told."""

import statistics

import pytest

from core.measure.comparison import Comparison
from core.search.advisors.bandit import BanditAdvisor
from core.search.advisors.bayesian import BayesianAdvisor
from core.search.advisors.evolution import EvolutionAdvisor
from core.search.advisors.hybrid import HybridAdvisor
from core.search.advisors.random import RandomAdvisor
from core.search.contract import Budget, Cost, Proposal, Trial, Verdict, View
from core.search.space import Choice, IntRange, Space, Subset
from tests.core.search.searches import EXPERT, run_search, vary
from tests.core.search.toy import Scripted

KNOBS = Space(
    fields={
        **{f"knob{i}": Choice(values=("1", "2", "3"), optional=True) for i in range(12)},
        "threshold": IntRange(low=1, high=1000, scale="log", optional=True),
        "passes": Subset(items=("licm", "gvn"), optional=True),
    }
)
GROUPS = {"first": [f"knob{i}" for i in range(4)], "second": [f"knob{i}" for i in range(4, 12)]}
SEARCHERS = [EvolutionAdvisor(), BanditAdvisor(groups=GROUPS), BayesianAdvisor()]


def ratio(payload):
    """Four of the knobs matter, two harm."""
    good = 0.1 * sum(payload.get(f"knob{i}") == "2" for i in range(4))
    return 1 + good - 0.1 * sum(f"knob{i}" in payload for i in (10, 11))


def dialogue(advisor, seed, evaluations=40, batch=4, space=KNOBS):
    """All payloads that an advisor proposes when every answer is the true ratio."""
    baseline = trial(0, {})
    view = View(
        problem="0" * 64,
        evidence={"channels": {}, "missing": {}},
        space=space,
        baseline=baseline,
        seed=seed,
        batch=batch,
        budget=Budget(evaluations=evaluations),
    )
    talk, given, answer = advisor.propose(view, None), [], None
    while len(given) < evaluations:
        try:
            batch_given = next(talk) if answer is None else talk.send(answer)
        except StopIteration:
            break
        answer = [trial(len(given) + i + 1, p.payload) for i, p in enumerate(batch_given)]
        given += [p.payload for p in batch_given]
    talk.close()
    return given


def compared(value):
    return Comparison(
        baseline="0" * 64,
        candidate="0" * 64,
        stage="screen",
        seed=0,
        ratio=value,
        low=value,
        high=value,
        level=0.99,
        margin=0.01,
        decision="faster" if value > 1 else "slower" if value < 1 else "same",
        rule="given",
        pairs=1,
        clock="given",
        modelled=True,
        samples=None,
        environment="0" * 64,
        wall_s=0.0,
        flags=(),
    )


def trial(index, payload):
    return Trial(
        problem="0" * 64,
        index=index,
        round=1,
        key="0" * 64,
        advisor="test",
        proposal=Proposal(payload=payload),
        candidate=None,
        duplicate_of=None,
        verdict=Verdict(accepted=True, checks=1),
        screen=compared(ratio(payload)) if index else None,
        cost=Cost(proposals=1, evaluations=1),
    )


@pytest.mark.parametrize("advisor", SEARCHERS, ids=lambda a: a.name)
def test_every_proposal_is_new_and_valid_and_repeatable(advisor):
    given = dialogue(advisor, seed=5)
    assert len(given) == 40
    assert [KNOBS.errors(payload) for payload in given] == [()] * 40
    assert all(payload not in given[:i] for i, payload in enumerate(given))
    assert given == dialogue(advisor, seed=5)
    assert given != dialogue(advisor, seed=6)


@pytest.mark.parametrize("advisor", SEARCHERS, ids=lambda a: a.name)
def test_what_pays_is_found_sooner_than_by_chance(advisor):
    def best(of):
        return statistics.mean(max(map(ratio, dialogue(of, seed))) for seed in range(8))

    assert best(advisor) > best(RandomAdvisor()) + 0.02


def test_the_model_sets_few_of_many_options():
    many = KNOBS.model_copy(update={"fields": {f"knob{i}": KNOBS.fields["knob0"] for i in range(60)}, "set_at_once": 2})
    given = dialogue(BayesianAdvisor(startup=4), seed=1, space=many)
    assert len(given) == 40
    assert max(len(payload) for payload in given[4:]) <= 4


def test_the_bandit_ends_when_a_small_space_is_exhausted():
    outcome, run = run_search(BanditAdvisor(), evaluations=5000)
    assert len(run.recorded(outcome.chosen.problem)) > 50


def test_a_hybrid_opens_with_the_expert_and_goes_on_from_its_best():
    _, alone = run_search(EXPERT, evaluations=12)
    _, both = run_search(HybridAdvisor(opening=EXPERT, share=0.3), evaluations=12)
    first, second = (sorted({t.index: t for t in r.lines}.items()) for r in (alone, both))
    assert [t.proposal for _, t in first[1:4]] == [t.proposal for _, t in second[1:4]]
    assert [t.proposal for _, t in first] != [t.proposal for _, t in second]


def test_a_hybrid_goes_on_when_its_opening_has_nothing_more_to_say():
    _, run = run_search(HybridAdvisor(opening=Scripted([[vary(unroll=3)]])), evaluations=10)
    assert len({t.index for t in run.lines}) > 10
