"""The command line, by running it: cheap to list, honest exit codes, one paragraph for every error."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click
import pytest

from core.errors import BadInput, ComplabError
from experiments.cli import COMMANDS, Entry, run

HEAVY = ("torch", "litellm", "ray", "wandb", "hydra", "omegaconf", "numpy", "scipy", "matplotlib", "pydantic", "rich")


def complab(*argv: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "experiments.cli", *argv]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables}, timeout=60)


def raising(error: BaseException) -> dict[str, Entry]:
    """A command table with one command that raises."""

    @click.command()
    def boom() -> None:
        raise error

    globals()["boom"] = boom
    sys.modules.setdefault("command_under_test", sys.modules[__name__])
    return {"boom": Entry(target="command_under_test:boom", help="Raises.")}


def test_help_lists_every_command_and_loads_no_heavy_module() -> None:
    program = (
        "import sys; from experiments.cli import run; code = run(['--help']); "
        f"print('LOADED', [name for name in {HEAVY!r} if name in sys.modules]); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "LOADED []" in done.stdout
    for name, entry in COMMANDS.items():
        assert name in done.stdout
        assert entry.help.split()[0] in done.stdout


@pytest.mark.serial
def test_help_takes_under_300_ms_of_processor_time() -> None:
    spent = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        complab("--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) < 0.3


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_can_be_called(name: str) -> None:
    done = complab(name, "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage: complab" in done.stdout


def test_an_unknown_command_names_the_near_ones() -> None:
    done = complab("tunee")
    assert done.returncode == 2
    assert "'tunee'" in done.stderr
    assert "tune" in done.stderr


def test_an_unknown_option_is_bad_input() -> None:
    assert complab("--nonsense").returncode == 2


def test_the_version_is_printed() -> None:
    done = complab("--version")
    assert (done.returncode, done.stdout) == (0, f"complab {version('complab')}\n"), done.stderr


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (ComplabError("The tool is gone.", "Install it."), 1, "Error: The tool is gone. Install it.\n"),
        (BadInput("x.c is no file.", "Give one."), 2, "Error: x.c is no file. Give one.\n"),
        (PermissionError(errno.EACCES, "Permission denied", "runs/x"), 1, "runs/x: Permission denied"),
        (OSError(errno.ENOSPC, "No space left on device", "runs/x"), 1, "Free some space"),
        (OSError(errno.ENOSPC, "No space left on device"), 1, "Free some space"),
        (OSError(errno.EROFS, "Read-only file system", "runs/x"), 1, "another path"),
        (ModuleNotFoundError("No module named 'litellm'", name="litellm"), 1, ".[llm]"),
        (KeyboardInterrupt(), 130, "Interrupted."),
        (click.Abort(), 130, "Interrupted."),
        (click.UsageError("Wrong."), 2, "Error: Wrong."),
        (click.exceptions.Exit(1), 1, ""),
    ],
)
def test_every_end_has_its_exit_code_and_paragraph(
    error: BaseException, code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["boom"], raising(error)) == code
    shown = capsys.readouterr()
    assert text in shown.err
    assert "Traceback" not in shown.err
    assert shown.out == ""


def test_a_fault_of_ours_is_one_paragraph_with_the_traceback_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPLAB_CACHE", str(tmp_path))
    assert run(["boom"], raising(RuntimeError("two\nlines"))) == 1
    shown = capsys.readouterr().err
    kept = list((tmp_path / "errors").iterdir())
    assert len(kept) == 1
    assert str(kept[0]) in shown
    assert "RuntimeError: two lines" in shown
    assert shown.count("\n") == 1
    assert "Traceback" in kept[0].read_text()


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPLAB_DEBUG", "1")
    assert run(["boom"], raising(BadInput("x is wrong."))) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_closed_pipe_ends_quietly() -> None:
    program = (
        "import sys, click; from experiments.exits import guarded\n"
        "def talk():\n for _ in range(100_000): click.echo('x' * 100)\n return 0\n"
        "sys.exit(guarded(talk))"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert (process.stderr.read(), process.wait(timeout=30)) == (b"", 0)
    process.stderr.close()


def test_ctrl_c_ends_with_130() -> None:
    program = (
        "import sys, time; from experiments.exits import guarded\n"
        "def wait():\n print('ready', flush=True); time.sleep(60); return 0\n"
        "sys.exit(guarded(wait))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, shown = process.communicate(timeout=30)
    assert process.returncode == 130
    assert shown.startswith("Interrupted.")
    assert shown.count("\n") == 1


def test_a_bad_key_of_a_real_command_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "experiments.cli", "tune", "x.c", "budgett=3", "--json", str(tmp_path / "out.json")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "'budgett'" in done.stderr
    assert "budget" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_doctor_prints_one_json_object() -> None:
    done = complab("doctor", "--json")
    assert done.returncode in (0, 1), done.stderr
    assert {row["state"] for row in json.loads(done.stdout)["rows"]} <= {"ok", "missing", "unproven"}
