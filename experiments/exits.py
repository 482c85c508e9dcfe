"""How every complab program ends: one paragraph for people, and an exit code for scripts."""

import errno
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from core.console import paragraph
from core.errors import ComplabError

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

EXTRAS = {
    "litellm": "llm",
    "xllamacpp": "local",
    "llvmlite": "llvm",
    "torch": "torch",
    "triton": "torch",
    "transformers": "train",
    "peft": "train",
    "torch_mlir": "mlir",
    "ray": "ray",
    "wandb": "track",
}
"""Optional packages, by import name, and the extra of pyproject.toml that installs each."""

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
_NO_ACCESS = {errno.EACCES, errno.EPERM, errno.EROFS}


def guarded(program: Callable[[], int]) -> int:
    """Run a program to its exit code; whatever it raises becomes a paragraph on stderr.

    COMPLAB_DEBUG=1 shows the traceback of every error.
    """
    try:
        code = program()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader (`| head`) has seen enough. Point stdout elsewhere so that the interpreter's last flush is silent.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        paragraph("Interrupted. What had ended is kept; the same command goes on from there.")
        return INTERRUPTED
    except Exception as error:
        return report(error)


def report(error: Exception) -> int:
    """Write an exception as one paragraph and return the exit code that belongs to it."""
    if os.environ.get("COMPLAB_DEBUG") == "1":
        traceback.print_exception(error)
    readable = _readable(error)
    if readable is not None:
        paragraph(f"Error: {readable}")
        return readable.exit_code
    summary = " ".join(f"{type(error).__name__}: {error}".split())
    paragraph(
        f"Error: {summary} This is a fault of complab, not of what you typed: please report it with "
        f"{_keep_traceback(error)} (COMPLAB_DEBUG=1 prints the traceback here)."
    )
    return FAILED


def _readable(error: Exception) -> ComplabError | None:
    if isinstance(error, ComplabError):
        return error
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in EXTRAS:
        package = (error.name or "").partition(".")[0]
        return ComplabError(
            f"This needs the package {package}, which is not installed.",
            f"Type: .venv/bin/pip install -c requirements/constraints.txt -e '.[{EXTRAS[package]}]'",
        )
    if isinstance(error, OSError) and error.errno in _NO_SPACE:
        # A failed write knows no file name, only a failed open does.
        where = error.filename or "While writing"
        return ComplabError(f"{where}: {error.strerror}.", "Free some space, or run from a directory on another disk.")
    if isinstance(error, OSError) and error.errno in _NO_ACCESS and error.filename is not None:
        return ComplabError(f"{error.filename}: {error.strerror}.", "Change its permissions, or give another path.")
    return None


def _keep_traceback(error: Exception) -> str:
    """Write the traceback to the cache, or where that is not possible to the temporary folder; say where it is."""
    from core.cache import cache_dir
    from core.llm.redact import redact

    text = redact("".join(traceback.format_exception(error)))
    name = f"error-{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}.txt"
    places: tuple[Callable[[], Path], ...] = (lambda: cache_dir("errors"), lambda: Path(tempfile.gettempdir()))
    for place in places:
        try:
            file = place() / name
            file.write_text(text, encoding="utf-8")
        except (OSError, ComplabError):
            continue
        return f"the traceback in {file}"
    return f"this traceback, which no folder could take:\n{text}"
