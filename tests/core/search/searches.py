"""Searches of the toy problem, as the tests of the loop run them."""

import json

from core.search.advisors.adversarial import AdversarialAdvisor
from core.search.advisors.bandit import BanditAdvisor
from core.search.advisors.bases import ExpertAdvisor, ExpertRule, ModelAdvisor
from core.search.advisors.bayesian import BayesianAdvisor
from core.search.advisors.evolution import EvolutionAdvisor
from core.search.advisors.hybrid import HybridAdvisor
from core.search.advisors.random import RandomAdvisor
from core.search.contract import Budget, Proposal
from core.search.loop import search
from tests.core.search.toy import (
    DEFAULT,
    MemoryRun,
    ToyCompiler,
    ToyJudge,
    ToyProblem,
    services,
)


def vary(**fields):
    return Proposal(payload={**DEFAULT.payload, **fields})


class Echo(ModelAdvisor):
    """Answers like a model that copies the best so far with one knob turned."""

    def ask(self, view, trials, s):
        return [vary(unroll=len(trials) % 9, width=w) for w in (1, 4)]


EXPERT = ExpertAdvisor(
    [
        ExpertRule(lambda e: "hint" in e.channels, lambda e: {"width": 8}, "wide is good"),
        ExpertRule(lambda e: "profile" in e.channels, lambda e: {"unroll": 8}, "needs a profile"),
        ExpertRule(lambda e: True, lambda e: {"unroll": 4}, "four is a good number"),
        ExpertRule(lambda e: True, lambda e: {"passes": ["dse"]}, "wrong advice"),
    ]
)
ADVISORS = [
    RandomAdvisor(),
    EvolutionAdvisor(),
    BanditAdvisor(groups={"loops": ["unroll", "width"]}),
    BayesianAdvisor(startup=3),
    HybridAdvisor(opening=EXPERT),
    EXPERT,
    Echo(),
    AdversarialAdvisor(),
]


def run_search(advisor, *, problem=None, compiler=None, judge=None, evaluations=12, run=None, terms=None, **budget):
    run = run or MemoryRun()
    outcome = search(
        problem or ToyProblem(),
        advisor,
        compiler or ToyCompiler(),
        judge or ToyJudge(),
        Budget(evaluations=evaluations, **budget),
        run,
        services(),
        terms=terms,
    )
    return outcome, run


def stable(trials):
    """The trials without what no two runs share: their duration."""
    return [
        json.loads(t.model_copy(update={"cost": None, "free": None}).model_dump_json(warnings=False)) for t in trials
    ]
