import pytest

from core.errors import BadInput
from llvm_tuning.configs import MeasureConfig, TuneConfig
from llvm_tuning.tune import run


@pytest.mark.parametrize(
    "wrong",
    [
        {"budget": 0},
        {"batch": 0},
        {"run_timeout_s": 0.0},
        {"measure": MeasureConfig(alpha=1.0)},
        {"measure": MeasureConfig(margin=-0.1)},
        {"measure": MeasureConfig(screen_s=0.0)},
    ],
    ids=str,
)
def test_a_number_out_of_range_is_refused_before_anything_is_written(tmp_path, wrong):
    with pytest.raises(BadInput):
        run(TuneConfig(program="matmul_int8", runs=str(tmp_path / "runs"), **wrong), lambda event: None)
    assert not (tmp_path / "runs").exists()
