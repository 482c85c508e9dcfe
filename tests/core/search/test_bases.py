from core.llm.errors import BudgetExceeded
from core.search.advisors.bases import ModelAdvisor, batches, merged
from core.search.contract import Budget, Proposal
from core.search.loop import search
from core.search.space import Choice, Condition, Rule, Space
from tests.core.search.toy import DEFAULT, MemoryRun, ToyCompiler, ToyJudge, ToyProblem, services

SPACE = Space(
    fields={name: Choice(values=(0, 1, 2), optional=True) for name in ("a", "b", "c")},
    requires=(
        Rule(when=(Condition(field="b", op="eq", value=2),), then=(Condition(field="c", op="absent"),), why="no"),
    ),
)


def test_better_advice_is_not_overwritten_by_later():
    proposal = merged(SPACE, {}, [({"a": 1}, "first"), ({"a": 2, "b": 1}, "second"), ({"c": 1}, "third")])
    assert proposal.payload == {"a": 1, "c": 1}
    assert proposal.rationale == "first; third"


def test_advice_that_breaks_a_rule_is_left_out():
    proposal = merged(SPACE, {}, [({"c": 1}, "first"), ({"b": 2}, "second"), ({"a": 7}, "third")])
    assert proposal.payload == {"c": 1}


def test_the_default_may_be_overwritten():
    assert merged(SPACE, {"a": 0}, [({"a": 2}, "x")]).payload == {"a": 2}


def test_batches_keep_all_in_order():
    proposals = [merged(SPACE, {}, [({"a": v}, "")]) for v in (0, 1, 2)]
    assert [p for batch in batches(proposals, 2) for p in batch] == proposals


class Talker(ModelAdvisor):
    """Answers as scripted; an exception in the script is raised."""

    def __init__(self, script):
        self.script = list(script)

    def ask(self, view, trials, s):
        answer = self.script.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_model_that_may_ask_no_more_ends_the_search_with_the_reason_on_record():
    talker = Talker([[Proposal(payload={**DEFAULT.payload, "unroll": 3})], BudgetExceeded("--max-usd: spent.")])
    run = MemoryRun()
    outcome = search(ToyProblem(flat=True), talker, ToyCompiler(), ToyJudge(), Budget(evaluations=9), run, services())
    assert "llm ended early: --max-usd: spent." in outcome.fallback
    assert any(e.kind == "advisor" and "ended early" in e.message for e in run.events)


def test_a_model_that_has_nothing_to_say_is_no_early_end():
    run = MemoryRun()
    outcome = search(
        ToyProblem(flat=True), Talker([[]]), ToyCompiler(), ToyJudge(), Budget(evaluations=9), run, services()
    )
    assert outcome.fallback == "nothing was proposed"
