from hypothesis import given
from hypothesis import strategies as st

from core.search.minimal import minimise

NAMES = [f"k{i}" for i in range(8)]


@given(st.dictionaries(st.sampled_from(NAMES), st.integers(0, 3)), st.sets(st.sampled_from(NAMES)))
def test_exactly_the_fields_that_matter_are_left(payload, matter):
    def artefact(p):
        return {k: v for k, v in p.items() if k in matter}

    found = minimise(payload, {}, lambda p: artefact(p) == artefact(payload))
    assert found.payload == artefact(payload)
    assert sorted(found.dropped) == sorted(payload.keys() - matter)


@given(st.sets(st.sampled_from(NAMES), min_size=1), st.integers(0, 2**30))
def test_whatever_depends_on_whatever_the_result_is_the_same_and_nothing_more_can_go(names, seed):
    """An artefact that depends on the fields in no simple way."""
    payload = dict.fromkeys(names, 1)

    def artefact(p):
        return hash((seed, tuple(sorted(p)))) % 2

    def same(p):
        return artefact(p) == artefact(payload)

    found = minimise(payload, {}, same)
    assert same(found.payload)
    assert not any(same({k: v for k, v in found.payload.items() if k != name}) for name in found.payload)


def test_fields_of_the_baseline_go_back_to_it():
    found = minimise({"width": 8, "unroll": 4}, {"width": 1, "unroll": 0}, lambda p: p["width"] == 8)
    assert found.payload == {"width": 8, "unroll": 0}
    assert found.dropped == ("unroll",)
