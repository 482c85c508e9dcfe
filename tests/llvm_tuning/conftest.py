from pathlib import Path

import pytest

from core.runs.store import Store
from core.sandbox.service import open_sandbox
from core.search.services import Doors
from llvm_tuning.problem import make_problem
from llvm_tuning.program import load_program
from llvm_tuning.toolchain.discover import discover


@pytest.fixture(scope="session")
def tools():
    return discover()


@pytest.fixture(scope="session")
def box():
    return open_sandbox()


@pytest.fixture
def services(box, tmp_path):
    """All doors but clock and model: what is tested with them never measures."""
    return Doors(box=box, store=Store(tmp_path / "blobs"), measure=None, llm=None)


@pytest.fixture
def problem_of(tools, tmp_path):
    """A function from C text to its tuning problem."""

    def make(text: str, name: str = "p.c", folder: Path = tmp_path, **options):
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)
        return make_problem(load_program(str(folder / name), **options), tools)

    return make
