import json
import math

import pytest

from core.llm.adapters.scripted import Scripted
from core.llm.client import Client
from core.llm.types import Reply, TokenLogprob
from core.search.contract import Budget, Comparison, Cost, Evidence, Proposal, Trial, Verdict, View
from core.search.services import Doors
from llvm_tuning.advisors.llm import LlmAdvisor, style_of
from llvm_tuning.toolchain.knobs import KNOBS, space

SPACE = space(KNOBS)
EVIDENCE = Evidence(
    channels={
        "features": {"loads": 3},
        "remarks": [
            {
                "kind": "Missed",
                "pass": "inline",
                "name": "TooCostly",
                "function": "f",
                "line": 1,
                "message": "m",
                "count": 2,
            }
        ],
    }
)


def trial(index, payload, ratio=None):
    comparison = None
    if ratio is not None:
        decision = "faster" if ratio > 1 else "slower"
        comparison = Comparison(
            baseline="0" * 64, candidate="1" * 64, stage="screen", seed=0, ratio=ratio, low=ratio, high=ratio,
            level=0.99, margin=0.01, decision=decision, rule="r", pairs=9, clock="cpu", modelled=False, samples=None,
            environment="0" * 64, wall_s=1.0,
        )  # fmt: skip
    return Trial(
        problem="0" * 64, index=index, round=0, key="0" * 64, advisor="llm", proposal=Proposal(payload=payload),
        candidate=None, duplicate_of=None, verdict=Verdict(accepted=True, checks=1), screen=comparison, proof=None,
        cost=Cost(),
    )  # fmt: skip


def view(batch=2):
    return View(
        problem="0" * 64, evidence=EVIDENCE, space=SPACE, baseline=trial(0, {}), seed=1, batch=batch,
        budget=Budget(evaluations=8),
    )  # fmt: skip


def dialogue(style, script, batch=2):
    adapter = Scripted(script)
    client = Client("scripted/test", adapter)
    doors = Doors(box=None, store=None, measure=None, llm=client)
    return LlmAdvisor(style).propose(view(batch), doors), adapter


def favour(word):
    """A model that gives most weight to the option that contains a word."""

    def answer(request):
        lines = request.messages[-1].content.splitlines()
        options = {line[0]: line for line in lines if line[1:3] == ". "}
        weights = {label: 50.0 if word in line else 1.0 for label, line in options.items()}
        total = sum(weights.values())
        tops = [TokenLogprob(token=label, logprob=math.log(w / total)) for label, w in weights.items()]
        return Reply(
            text="A", finish="stop", prompt_tokens=9, completion_tokens=1,
            top_logprobs=tuple(sorted(tops, key=lambda t: -t.logprob)),
        )  # fmt: skip

    return answer


def test_a_choosing_models_favourite_comes_first_with_its_exchanges():
    talk, _ = dialogue("choose", favour("enable-gvn-hoist"))
    batch = next(talk)
    assert batch[0].payload == {"enable-gvn-hoist": "1"}
    assert batch[0].exchanges
    assert all(SPACE.errors(p.payload) == () for p in batch)


def test_what_has_won_is_built_upon():
    talk, _ = dialogue("choose", favour("enable-gvn-hoist"))
    next(talk)
    batch = talk.send([trial(1, {"enable-gvn-hoist": "1"}, ratio=1.5), trial(2, {"disable-lsr": "1"}, ratio=0.9)])
    assert all(p.payload["enable-gvn-hoist"] == "1" and len(p.payload) == 2 for p in batch)


def advice(*settings):
    knobs = [[{"name": n, "value": v} for n, v in s.items()] for s in settings]
    return json.dumps({"analysis": "a", "settings": [{"knobs": k, "reason": "because"} for k in knobs]})


def test_a_proposing_model_gives_whole_settings_with_reasons():
    talk, adapter = dialogue(
        "propose", [advice({"disable-lsr": "1", "slp-threshold": "-5"}, {"unroll-threshold": "600"})]
    )
    batch = next(talk)
    assert [p.payload for p in batch] == [{"disable-lsr": "1", "slp-threshold": "-5"}, {"unroll-threshold": "600"}]
    assert batch[0].rationale == "because"
    assert "TooCostly" in adapter.asked[0].messages[-1].content


def test_a_setting_outside_the_space_is_asked_again_with_the_reason():
    talk, adapter = dialogue("propose", [advice({"load": "evil.so"}), advice({"disable-lsr": "1"})])
    assert [p.payload for p in next(talk)] == [{"disable-lsr": "1"}]
    assert "unknown field" in adapter.asked[1].messages[-1].content


def test_a_model_that_stays_invalid_ends_the_dialogue():
    talk, _ = dialogue("propose", ["no"] * 3)
    with pytest.raises(StopIteration):
        next(talk)


HOSTILE = [
    {"-load": "/tmp/x.so"},
    {"disable-lsr": "1 -fplugin=/tmp/x.so"},
    {"disable-lsr": "@/tmp/response"},
    {"inline-threshold": "$(touch /tmp/x)"},
    {"inline-threshold": "1000; rm -rf /"},
    {"inline-threshold": "1e9"},
    {"Xclang": "-load"},
    {"o": "/etc/passwd"},
    {"disable-lsr\n": "1"},
    {"slp-threshold": "-10\x00"},
]


@pytest.mark.parametrize("setting", HOSTILE, ids=str)
def test_a_hostile_setting_never_reaches_the_compiler(setting):
    talk, _ = dialogue("propose", [advice(setting)] * 3)
    with pytest.raises(StopIteration):
        next(talk)


def test_only_the_packaged_small_model_is_made_to_choose():
    assert style_of(Client("local/smollm2-135m", Scripted([]))) == "choose"
    assert style_of(Client("openai/any", Scripted([]))) == "propose"
