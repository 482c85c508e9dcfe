import subprocess
from random import Random

from llvm_tuning.toolchain.discover import discover
from llvm_tuning.toolchain.knobs import KNOBS, available, drift, driver_flags, exactness, flags, opt_flags, space
from llvm_tuning.toolchain.semantics import SEMANTICS


def test_the_default_is_no_flag_at_all():
    assert flags(KNOBS, {}) == ()
    assert space(KNOBS).errors({}) == ()


def test_a_forced_vector_width_never_reorders_floating_point_sums():
    words = flags(KNOBS, {"force-vector-width": "8"})
    assert words == ("-mllvm", "-force-vector-width=8", "-mllvm", "-hints-allow-reordering=false")


def test_flags_come_in_catalogue_order_whatever_the_payloads_order():
    payload = {"slp-threshold": "5", "inline-threshold": "0"}
    assert flags(KNOBS, payload) == flags(KNOBS, dict(reversed(payload.items())))
    assert flags(KNOBS, payload)[1] == "-inline-threshold=0"


def test_an_option_that_the_compiler_lacks_is_left_out_and_named():
    options = {name: default for name, default in discover().options.items() if name != "slp-threshold"}
    knobs, missing = available(options)
    assert "slp-threshold" not in {k.name for k in knobs}
    assert set(missing) == {"slp-threshold"}


def test_the_catalogue_names_no_knob_twice():
    assert len({k.name for k in KNOBS}) == len(KNOBS) >= 98


def test_the_catalogues_defaults_are_the_installed_compilers():
    options = discover().options
    assert drift(options) == {}
    changed = {**options, "inline-threshold": "500"}
    assert drift(changed) == {"inline-threshold": "the catalogue says 225, the installed compiler 500"}


def test_a_knob_offers_another_value_than_its_default():
    for knob in KNOBS:
        assert set(knob.values) - {knob.default}, knob.name
        assert len(set(knob.values)) == len(knob.values), knob.name


def test_what_may_change_results_is_offered_only_on_request_and_labelled():
    offered = {s: {k.name for k in available(discover().options, s)[0]} for s in SEMANTICS}
    assert not offered["exact"] & {"fp-contract", "associative-math", "fast-math", "limit-float-precision"}
    assert {"fp-contract", "associative-math"} == offered["fp_reordering"] - offered["exact"] - {"reciprocal-math"}
    assert {"fast-math", "limit-float-precision"} <= offered["unsafe"] - offered["fp_reordering"]
    assert exactness(KNOBS, {"inline-threshold": "0"}) == "exact"
    assert exactness(KNOBS, {"inline-threshold": "0", "fp-contract": "fast"}) == "reordered"
    assert exactness(KNOBS, {"fast-math": "on", "fp-contract": "fast"}) == "reduced_precision"


def test_another_architectures_knobs_are_left_out():
    options = discover().options
    x86, arm = ({k.group for k in available(options, target=t)[0]} for t in ("x86_64", "aarch64"))
    assert "aarch64" not in x86
    assert "x86" not in arm
    assert {"x86"} == x86 - arm


def test_each_tool_gets_the_options_that_it_reads():
    payload = {"prefer-vector-width": "256", "gvn-max-num-deps": "20", "disable-lsr": "1", "enable-newgvn": "1"}
    assert driver_flags(KNOBS, payload) == ("-mprefer-vector-width=256",)
    assert opt_flags(KNOBS, payload) == ("-enable-newgvn=1", "-gvn-max-num-deps=20")
    assert set(flags(KNOBS, payload)) - {"-mllvm"} == {
        *("-mprefer-vector-width=256", "-gvn-max-num-deps=20", "-disable-lsr=1", "-enable-newgvn=1")
    }


def test_a_random_sample_sets_few_knobs():
    rng = Random(1)
    sizes = [len(space(KNOBS, pipeline=True).sample(rng)) for _ in range(200)]
    assert 4 <= sum(sizes) / len(sizes) <= 6


def test_the_installed_compiler_accepts_every_value(tmp_path):
    tools = discover()
    source = tmp_path / "a.c"
    source.write_text("int f(int *a, int n) { int s = 0; for (int i = 0; i < n; i++) s += a[i]; return s; }")
    compile_ = [*tools.driver, "-O3", "-w", "-c", str(source), "-o", str(tmp_path / "a.o")]
    # As many values at once as there are knobs: each value is in one of a few command lines.
    for place in range(max(len(k.values) for k in KNOBS)):
        payload = {k.name: k.values[place] for k in KNOBS if place < len(k.values) and k.name != "opt-level"}
        done = subprocess.run([*compile_, *flags(KNOBS, payload)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    refused = subprocess.run([*compile_, "-mllvm", "-inline-threshold=many"], capture_output=True)
    assert refused.returncode != 0
