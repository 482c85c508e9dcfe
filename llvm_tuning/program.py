"""The program to tune, as the user gave it, and what its runs must print."""

import difflib
import shlex
from pathlib import Path

from core.errors import BadInput
from core.records import Record
from llvm_tuning.suite.catalogue import Language, load_suite, select

LANGUAGES: dict[str, Language] = {".c": "c", ".cc": "c++", ".cpp": "c++", ".cxx": "c++"}
"""By the end of a file's name."""

_REFUSED = {"-c", "-S", "-E", "-M", "-MM", "-MD", "-MMD", "-save-temps"}
_REFUSED_PREFIXES = (
    *(
        "-o",
        "-x",
        "-B",
        "@",
        "-load",
        "-fplugin",
        "-fpass-plugin",
        "-mllvm",
        "-Xclang",
        "-wrapper",
        "--config",
        "-specs",
    ),
    *("--output", "-MF", "-fsave-optimization-record", "-foptimization-record-file", "-save-temps", "-ftime-trace"),
)

_LINK_ONLY = ("-l", "-L", "-Wl,", "-static", "-rdynamic")


class Input(Record):
    """One way to run the program."""

    args: tuple[str, ...] = ()
    stdin: bytes = b""
    files: dict[str, bytes] = {}
    """Files that it finds in its working directory."""


class Program(Record):
    """A C or C++ source with its flags, the inputs that tune, and the hidden ones that only the proof sees."""

    name: str
    path: Path
    language: Language
    cflags: tuple[str, ...] = ()
    inputs: tuple[Input, ...]
    hidden: tuple[Input, ...] = ()
    outputs: tuple[str, ...] = ()
    """Names of files that the program writes and that must not change."""
    check_stderr: bool = False

    @property
    def compared(self) -> tuple[str, ...]:
        """What is compared after each run: one executed check each."""
        return ("exit code", "stdout", *(("stderr",) if self.check_stderr else ()), *self.outputs)

    @property
    def compile_flags(self) -> tuple[str, ...]:
        """The flags without those that only the linker reads."""
        return tuple(f for f in self.cflags if not f.startswith(_LINK_ONLY))


def load_program(
    source: str,
    *,
    cflags: str = "",
    args: str = "",
    stdin: str | None = None,
    files: tuple[str, ...] = (),
    outputs: tuple[str, ...] = (),
    check_stderr: bool = False,
) -> Program:
    """Return the program of a path, or one of the shipped ones by name.

    Args:
        source: path of a C or C++ file, or the name of a shipped program (`complab llvm programs` lists them).
        cflags: extra compiler and linker flags, as one shell-quoted string.
        args: the program's arguments, as one shell-quoted string.
        stdin: file that the program reads from its standard input.
        files: files that it finds under their own names in its working directory.
        outputs: names of files that it writes, which must come out equal.
        check_stderr: compare the standard error as well.

    Raises:
        BadInput: a file is missing or unreadable, or a flag would change what is built.
    """
    flags = _flags(cflags)
    path = Path(source)
    if not path.is_file():
        shipped = shipped_programs()
        if source in shipped:
            if stdin or files or outputs:
                raise BadInput(
                    f"The shipped program {source!r} reads and writes no files.",
                    "Leave out --stdin, --input and --output; --args changes its size and seed.",
                )
            return _shipped(source, flags, args)
        near = difflib.get_close_matches(source, shipped, n=3)
        listed = f"Near names: {', '.join(near)}." if near else "`complab llvm programs` lists the shipped programs."
        raise BadInput(f"There is no C or C++ file {source!r}.", listed)
    if path.suffix not in LANGUAGES:
        raise BadInput(f"{source!r} is neither C nor C++.", f"Its name must end in {', '.join(LANGUAGES)}.")
    for name in outputs:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise BadInput(f"--output {name!r} is not a plain name.", "Name a file relative to the working directory.")
    given = Input(
        args=_split("--args", args),
        stdin=_read("--stdin", stdin) if stdin else b"",
        files={Path(f).name: _read("--input", f) for f in files},
    )
    return Program(
        name=path.stem,
        path=path,
        language=LANGUAGES[path.suffix],
        cflags=flags,
        inputs=(given,),
        outputs=outputs,
        check_stderr=check_stderr,
    )


def _flags(text: str) -> tuple[str, ...]:
    """Return the user's flags with include directories made absolute, so that they mean the same anywhere."""
    flags: list[str] = []
    words = iter(_split("--cflags", text))
    for word in words:
        if word in _REFUSED or word.startswith(_REFUSED_PREFIXES):
            raise BadInput(
                f"--cflags holds {word!r}, which would change what is built or load foreign code.",
                "Give only flags that the program needs, such as -I, -D, -march, -lm.",
            )
        for option in ("-isystem", "-I"):
            if word.startswith(option):
                directory = Path(word.removeprefix(option) or next(words, "")).resolve()
                if not directory.is_dir():
                    raise BadInput(f"--cflags names {str(directory)!r}, which is no directory.", f"Mend the {option}.")
                flags += [option, str(directory)]
                break
        else:
            flags.append(word)
    return tuple(flags)


def shipped_programs() -> dict[str, str]:
    """Return the names of the shipped programs with a line about each."""
    return {p.name: p.about for p in load_suite().programs}


def _shipped(name: str, cflags: tuple[str, ...], args: str) -> Program:
    suite = load_suite()
    (entry,) = select(suite, names=(name,))
    given = Input(args=_split("--args", args) if args else entry.args)
    return Program(
        name=name,
        path=suite.source(entry),
        language=entry.language,
        cflags=(*entry.cflags, *cflags),
        inputs=(given,),
        hidden=(Input(args=entry.hidden_args),),
    )


def _split(flag: str, text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise BadInput(f"{flag} {text!r} cannot be split into words: {error}.", "Quote it as in a shell.") from None


def _read(flag: str, name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise BadInput(f"{flag} {name!r} cannot be read: {error.strerror}.", "Give a readable file.") from None
