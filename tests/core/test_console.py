"""The console: plain where there is no terminal; JSON whole or not at all."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from core.console import write_json
from core.errors import BadInput


def test_without_a_terminal_no_escape_sequence_is_written() -> None:
    program = "from core.console import console; console().print('[bold red]word[/bold red] ' + 'x' * 90)"
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, env=environment)
    assert done.stdout.decode() == "word " + "x" * 90 + "\n"


def test_json_goes_to_stdout_as_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"a": [1, "é"]}, "-")
    assert json.loads(capsys.readouterr().out) == {"a": [1, "é"]}


def test_json_that_cannot_be_written_names_the_path_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"out\.json"):
        write_json({}, str(tmp_path / "nowhere" / "out.json"))
    (tmp_path / "out.json").mkdir()
    with pytest.raises(BadInput, match=r"out\.json"):
        write_json({}, str(tmp_path / "out.json"))
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_json_replaces_a_file_whole(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    target.write_text("old")
    write_json({"new": True}, str(target))
    assert json.loads(target.read_text()) == {"new": True}
