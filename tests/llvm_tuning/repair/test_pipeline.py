import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import BadInput
from llvm_tuning.repair.pipeline import Item, Pipeline, parse_pipeline, read_pipeline
from llvm_tuning.toolchain.routes import default_pipeline

names = st.from_regex(r"[a-z][a-z-]{0,8}", fullmatch=True)
params = st.none() | st.lists(
    st.from_regex(r"[a-z-]{0,6}(=-?[0-9]{1,3})?", fullmatch=True), min_size=1, max_size=3
).map(tuple)
leaves = st.builds(Item, name=names, params=params)
items = st.recursive(
    leaves,
    lambda inner: st.builds(Item, name=names, params=params, body=st.lists(inner, min_size=1, max_size=3).map(tuple)),
    max_leaves=10,
)
pipelines = st.builds(Pipeline, items=st.lists(items, min_size=1, max_size=4).map(tuple)).filter(
    lambda p: all(len(path) <= 8 for path, _ in p.walk())
)


def test_the_pipeline_of_o3_reads_and_writes_back_to_the_same_text(tools):
    text = default_pipeline(tools)
    assert parse_pipeline(text).text() == text


@given(pipelines)
def test_any_tree_writes_a_text_that_reads_back_to_it(pipeline):
    assert parse_pipeline(pipeline.text()) == pipeline


@given(st.text(alphabet="ab-<>(),; ", max_size=40))
def test_any_text_reads_as_a_tree_whose_text_is_well_formed_but_for_empty_names(text):
    pipeline, faults = read_pipeline(text)
    if not faults:
        assert pipeline.text() == text
    again, _ = read_pipeline(pipeline.text())
    assert read_pipeline(again.text())[0] == again


@pytest.mark.parametrize("text", ["a(b", "a)", "a,,b", "a,", "(a)", "a()", "a<b", "a>b", "a b", "a<b><c>", "a(b)c"])
def test_a_malformed_text_is_refused_with_what_is_wrong(text):
    with pytest.raises(BadInput, match="no pass pipeline"):
        parse_pipeline(text)


def test_edits_change_the_item_they_name_and_no_other():
    pipeline = parse_pipeline("a,function(b,loop(c)),d<x;n=1>")
    assert pipeline.find("c") == ((1, 1, 0),)
    assert pipeline.insert((1, 2), Item(name="e")).text() == "a,function(b,loop(c),e),d<x;n=1>"
    assert pipeline.insert((0,), Item(name="e")).text() == "e,a,function(b,loop(c)),d<x;n=1>"
    assert pipeline.remove((1, 0)).text() == "a,function(loop(c)),d<x;n=1>"
    assert pipeline.replace((1, 0), Item(name="e")).text() == "a,function(e,loop(c)),d<x;n=1>"
    assert pipeline.set_param((2,), "no-x").text() == "a,function(b,loop(c)),d<no-x;n=1>"
    assert pipeline.set_param((2,), "n=7").text() == "a,function(b,loop(c)),d<x;n=7>"
    assert pipeline.set_param((0,), "y").text() == "a<y>,function(b,loop(c)),d<x;n=1>"


def test_removing_the_last_item_of_a_container_removes_the_container():
    assert parse_pipeline("a,function(loop(c)),d").remove((1, 0, 0)).text() == "a,d"


@pytest.mark.parametrize(
    ("source", "target", "after"),
    [
        ((0,), (3,), "function(b,c),d,a"),
        ((2,), (0,), "d,a,function(b,c)"),
        ((1, 1), (1, 0), "a,function(c,b),d"),
        ((1, 0), (0,), "b,a,function(c),d"),
        ((0,), (1, 1), "function(b,a,c),d"),
        ((1, 1), (3,), "a,function(b),d,c"),
        ((1,), (1,), "a,function(b,c),d"),
    ],
)
def test_a_moved_item_stands_before_the_one_that_stood_at_the_target(source, target, after):
    assert parse_pipeline("a,function(b,c),d").move(source, target).text() == after


@given(pipelines, st.data())
def test_moving_keeps_every_pass(pipeline, data):
    paths = [path for path, _ in pipeline.walk()]
    source, target = data.draw(st.sampled_from(paths)), data.draw(st.sampled_from(paths))
    if target[: len(source)] == source and target != source:
        with pytest.raises(BadInput, match="into itself"):
            pipeline.move(source, target)
        return

    def passes(p):
        return sorted(item.text() for _, item in p.walk() if item.body is None)

    assert passes(pipeline.move(source, target)) == passes(pipeline)


@pytest.mark.parametrize("path", [(), (5,), (-1,), (0, 0), (1, 7)])
def test_an_edit_of_no_place_is_refused(path):
    with pytest.raises(BadInput, match="no place"):
        parse_pipeline("a,function(b)").remove(path)
    with pytest.raises(BadInput, match="no place"):
        parse_pipeline("a,function(b)").insert((*path, 9), Item(name="c"))
