import subprocess

import pytest

from llvm_tuning.toolchain.discover import discover
from llvm_tuning.toolchain.knobs import KNOBS, available, flags, space


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
    options = discover().options - {"slp-threshold"}
    knobs, missing = available(options)
    assert "slp-threshold" not in {k.name for k in knobs}
    assert set(missing) == {"slp-threshold"}


def test_the_catalogue_names_no_knob_twice():
    assert len({k.name for k in KNOBS}) == len(KNOBS) >= 15


@pytest.mark.parametrize("knob", KNOBS, ids=lambda k: k.name)
def test_the_installed_compiler_accepts_every_value(knob, tmp_path):
    tools = discover()
    assert knob.name in tools.options
    source = tmp_path / "a.c"
    source.write_text("int f(int *a, int n) { int s = 0; for (int i = 0; i < n; i++) s += a[i]; return s; }")
    for value in knob.values:
        words = flags((knob,), {knob.name: value})
        done = subprocess.run(
            [*tools.driver, "-O3", *words, "-c", source, "-o", tmp_path / "a.o"], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
