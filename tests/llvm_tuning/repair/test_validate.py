import pytest
from hypothesis import given
from hypothesis import strategies as st

from llvm_tuning.repair.catalogue import BEYOND_O3, PassCatalogue, read_listing
from llvm_tuning.repair.validate import MOST_PASSES, MOST_TEXT, repair
from llvm_tuning.toolchain.routes import default_pipeline


@pytest.fixture(scope="module")
def legal(tools):
    return PassCatalogue.of(tools)


def test_every_pass_of_the_table_is_known_to_the_installed_opt(legal):
    assert set(legal.passes) >= BEYOND_O3


def test_no_pass_that_prints_instruments_or_crashes_is_legal(legal):
    wrong = ("print", "dot-", "view-", "trigger-", "asan", "insert-gcov", "pgo-instr", "debugify", "strip", "sancov")
    assert not [name for name in legal.passes if name.startswith(wrong)]


def test_the_listing_gives_levels_and_parameters():
    listing = """Module passes:
  verify
Function passes:
  verify
Function passes with params:
  simplifycfg<keep-loops;no-keep-loops;bonus-inst-threshold=N>
Function analyses:
  loops
Loop passes with params:
  licm<allowspeculation>
Machine function passes (WIP):
  shrink-wrap
"""
    found = read_listing(listing)
    assert sorted(found) == ["licm", "simplifycfg", "verify"]
    assert found["verify"].levels == ("module", "function")
    assert found["simplifycfg"].flags == {"keep-loops", "no-keep-loops"}
    assert found["simplifycfg"].numbers == {"bonus-inst-threshold"}
    assert found["licm"].levels == ("loop",)


def test_the_pipeline_of_o3_needs_no_repair(tools, legal):
    done = repair(default_pipeline(tools), legal)
    assert done.pipeline.text() == default_pipeline(tools)
    assert (done.dropped, done.changed) == ((), ())


def test_the_name_of_o3_is_spelled_out(tools, legal):
    assert repair("default<O3>,globaldce", legal).pipeline.text() == default_pipeline(tools) + ",globaldce"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("function(sroa,loop(indvars", "function(sroa,loop(indvars))"),
        ("globalopt,sroa", "globalopt,function(sroa)"),
        ("licm", "function(loop-mssa(licm))"),
        ("function(loop(indvars,licm))", "function(loop(indvars),loop-mssa(licm))"),
        ("function(loop-mssa(licm,loop-unroll-full))", "function(loop-mssa(licm),loop(loop-unroll-full))"),
        ("function(loop-mssa(loop(licm)))", "function(loop-mssa(licm))"),
        ("function(sroa,globalopt,gvn)", "function(sroa),globalopt,function(gvn)"),
        ("cgscc(function(inline))", "cgscc(inline)"),
        ("function(inline)", "cgscc(inline)"),
        ("cgscc(devirt<99>(inline))", "cgscc(devirt<8>(inline))"),
        ("function<no-rerun;eager-inv>(sroa)", "function<eager-inv>(sroa)"),
        ("function(instcombine)", "function(instcombine<no-verify-fixpoint>)"),
        (
            "function(instcombine<verify-fixpoint;max-iterations=2>)",
            "function(instcombine<max-iterations=2;no-verify-fixpoint>)",
        ),
        ("function(simplifycfg<bonus-inst-threshold=-3>)", "function(simplifycfg<bonus-inst-threshold=0>)"),
        ("function(slp_vectorizer)", "function(slp-vectorizer)"),
        ("function(simplifycfg<kep-loops>)", "function(simplifycfg)"),
        ("function(loop-unroll<full-unroll-max=lots>)", "function(loop-unroll)"),
        ("function(wrapper(sroa))", "function(sroa)"),
        ("function(loop(globalopt))", "globalopt"),
    ],
)
def test_each_fault_has_its_repair_and_the_repair_is_told(legal, text, after):
    done = repair(text, legal)
    assert done.pipeline.text() == after
    assert done.dropped or done.changed


def test_an_unknown_parameter_is_dropped_even_when_one_letter_off(legal):
    done = repair("function(simplifycfg<keep-loop>)", legal)
    assert done.pipeline.text() == "function(simplifycfg)"
    assert done.dropped[0].item == "simplifycfg<keep-loop>"


@pytest.mark.parametrize(
    "text", ["", "function()", "xyzzy", "function", "-O3", "asan", "dot-cfg", "print<loops>", "invalidat"]
)
def test_what_holds_nothing_legal_gives_an_empty_pipeline(legal, text):
    assert repair(text, legal).pipeline.items == ()


def test_a_flood_of_passes_is_cut(legal):
    done = repair(",".join(["sroa"] * (MOST_PASSES + 1)), legal)
    assert len(done.pipeline.find("sroa")) == MOST_PASSES
    assert "sroa" in [d.item for d in done.dropped]
    assert any("characters" in d.why for d in repair("a" * (MOST_TEXT + 1), legal).dropped)


vocabulary = st.sampled_from(
    [
        *("sroa", "licm", "inline", "globalopt", "loop-unroll-full", "loop-idiom", "instcombine", "gvn", "nonsense"),
        *("function", "cgscc", "loop", "loop-mssa", "module", "devirt", "<4>", "<pre>", "<eager-inv>", "(", ")", ","),
        *(";", "<", ">", " ", "require<globals-aa>", "invalidate<aa>", "default<O3>"),
    ]
)


@given(st.lists(vocabulary, max_size=30).map("".join))
def test_a_repaired_pipeline_needs_no_further_repair(legal, text):
    once = repair(text, legal)
    twice = repair(once.pipeline.text(), legal)
    assert twice.pipeline == once.pipeline
    assert (twice.dropped, twice.changed if once.pipeline.items else ()) == ((), ())
