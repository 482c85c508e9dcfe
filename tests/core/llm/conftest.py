import importlib.util
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def _load_beside(name: str) -> Any:
    """Import a file of this folder by path: with --import-mode=importlib it is not importable by name."""
    spec = importlib.util.spec_from_file_location(f"llm_tests_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def server() -> Iterator[Any]:
    fake = _load_beside("fake_server").FakeServer()
    yield fake
    fake.close()


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("COMPLAB_CACHE", str(tmp_path / "cache"))
    logging.getLogger("core.llm").setLevel(logging.DEBUG)
