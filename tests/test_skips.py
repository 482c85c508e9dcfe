"""In CI a skipped test fails, so that a missing tool is never a green result."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = """
import pytest

def test_tool():
    pytest.skip("no clang here")

@pytest.mark.skipif(True, reason="no model here")
def test_model():
    pass

def test_gpu():
    pytest.skip("hardware: no GPU")

@pytest.mark.xfail(reason="known", strict=True)
def test_known():
    assert False
"""


SKIPS_ITSELF = "import pytest\npytest.importorskip('no_such_module')\n"


def outcome(folder: Path, ci: str) -> str:
    """Run the sample tests under the real conftest and return what pytest printed."""
    (folder / "conftest.py").write_text((Path(__file__).parent / "conftest.py").read_text())
    (folder / "test_sample.py").write_text(TESTS)
    (folder / "test_itself.py").write_text(SKIPS_ITSELF)
    quiet = ["-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", *quiet, "--continue-on-collection-errors", str(folder)]
    variables = {**os.environ, "CI": ci}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=variables, timeout=60).stdout


def test_in_ci_a_skip_fails_unless_it_names_missing_hardware(tmp_path: Path) -> None:
    shown = outcome(tmp_path, ci="true")
    assert "1 failed, 1 skipped, 1 xfailed, 2 errors" in shown
    for reason in ("no clang here", "no model here", "no_such_module"):
        assert reason in shown
    assert "no GPU" not in shown


def test_outside_ci_a_skip_is_a_skip(tmp_path: Path) -> None:
    assert "4 skipped, 1 xfailed" in outcome(tmp_path, ci="")
