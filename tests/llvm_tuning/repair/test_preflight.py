import json

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from llvm_tuning.cli import llvm
from llvm_tuning.repair import preflight
from llvm_tuning.repair.catalogue import PassCatalogue
from llvm_tuning.repair.pipeline import parse_pipeline
from llvm_tuning.repair.preflight import refusal, repair_for
from llvm_tuning.repair.validate import Repaired, repair


def test_opt_runs_the_pipeline_of_o3(box, tools):
    assert refusal(box, tools, PassCatalogue.of(tools).default) is None


def test_opt_runs_every_legal_pass_with_each_of_its_parameters(box, tools):
    legal = PassCatalogue.of(tools)
    heads = [
        head
        for name, signature in legal.passes.items()
        for head in (name, *(f"{name}<{p}>" for p in (*signature.flags, *(f"{n}=2" for n in signature.numbers))))
    ]
    for start in range(0, len(heads), 60):
        pipeline = repair(",".join(heads[start : start + 60]), legal).pipeline
        assert refusal(box, tools, pipeline) is None


def test_what_opt_still_refuses_is_found_and_dropped_alone(box, tools, monkeypatch):
    # Rules that let a bare licm through: only opt's own word is left.
    text = "function(sroa,loop(licm),gvn),globaldce"
    lax = Repaired(pipeline=parse_pipeline(text), dropped=(), changed=())
    monkeypatch.setattr(preflight, "repair", lambda *_: lax)
    done = repair_for(box, tools, text)
    assert done.pipeline.text() == "function(sroa,gvn),globaldce"
    assert [d.item for d in done.dropped] == ["licm"]
    assert "LICM requires MemorySSA" in done.dropped[0].why


def test_a_pipeline_with_too_many_refused_items_is_given_up(box, tools, monkeypatch):
    text = ",".join(["function(loop(licm))"] * (preflight.MOST_DROPPED + 1))
    lax = Repaired(pipeline=parse_pipeline(text), dropped=(), changed=())
    monkeypatch.setattr(preflight, "repair", lambda *_: lax)
    assert repair_for(box, tools, text).pipeline.items == ()


def test_the_command_prints_the_legal_pipeline_and_what_was_dropped():
    done = CliRunner().invoke(llvm, ["repair", "--json", "-"], input="function(sroa,licm,xyzzy\n")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["pipeline"] == "function(sroa,loop-mssa(licm))"
    assert [d["item"] for d in told["dropped"]] == ["xyzzy"]


def test_the_command_refuses_what_holds_no_pass():
    done = CliRunner().invoke(llvm, ["repair"], input="rm -rf /")
    assert done.exit_code != 0
    assert "legal pipeline" in str(done.exception)


@pytest.mark.parametrize("head", ["function(sroa)", "globalopt"])
def test_an_untouched_pipeline_stays_as_it_is(box, tools, head):
    done = repair_for(box, tools, head)
    assert done.pipeline.text() == head
    assert (done.dropped, done.changed) == ((), ())


@given(
    st.lists(
        st.sampled_from(
            [
                "licm",
                "loop-unroll-full",
                "gvn",
                "inline",
                "globalopt",
                "function(",
                "loop-mssa(",
                "cgscc(",
                "devirt<2>(",
                ")",
                "simplifycfg<keep-loops>",
            ]
        ),
        min_size=1,
        max_size=12,
    ).map(",".join)
)
@settings(max_examples=20, deadline=None)
def test_opt_runs_whatever_the_rules_let_through(box, tools, text):
    assert refusal(box, tools, repair(text, PassCatalogue.of(tools)).pipeline) is None
