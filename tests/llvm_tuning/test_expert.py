import pytest

from core.search.contract import Evidence
from llvm_tuning.advisors.expert import RULES, Facts
from llvm_tuning.toolchain.knobs import KNOBS, space


def remark(compiler_pass, name, count=1):
    return {"kind": "Missed", "pass": compiler_pass, "name": name, "function": "f", "line": 1, "count": count}


def settings(channels):
    facts = Facts.of(Evidence(channels=channels))
    return [dict(rule.setting) for rule in RULES if rule.when(facts)]


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.reason[:40])
def test_every_rule_proposes_a_setting_of_the_space_with_a_reason(rule):
    assert space(KNOBS).errors(rule.setting) == ()
    assert len(rule.reason) > 20


def test_narrow_data_calls_for_bandwidth():
    assert {"vectorizer-maximize-bandwidth": "1"} in settings({"features": {"widenings": 2}})
    assert {"vectorizer-maximize-bandwidth": "1"} not in settings({"features": {"widenings": 0}})


def test_a_floating_point_sum_calls_for_full_unrolling():
    channels = {"remarks": [remark("loop-vectorize", "CantReorderFPOps")]}
    assert settings(channels)[0] == {"unroll-threshold": "1200"}


def test_absent_evidence_still_gives_proposals():
    assert settings({})
