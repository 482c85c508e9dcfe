"""What a suite holds: programs with their inputs, flags, kernels and recorded outputs, read from a YAML file."""

import difflib
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import AfterValidator, StringConstraints, ValidationError

from core.errors import BadInput
from core.records import Digest, Record

SHIPPED = Path(__file__).parent / "programs" / "suite.yaml"
"""The suite that comes with complab."""

Split = Literal["dev", "test"]
Language = Literal["c", "c++"]
InputName = Literal["small", "args", "large", "hidden_args"]
INPUTS: tuple[InputName, ...] = ("small", "args", "large", "hidden_args")
"""small: about 1 ms, for quick checks; args: tunes; large: confirms; hidden_args: only the final proof sees it."""

SUFFIXES: dict[Language, str] = {"c": ".c", "c++": ".cpp"}


def _plain_flag(flag: str) -> str:
    if not flag.startswith(("-f", "-l", "-D", "-std=", "-m", "-W", "-pthread")) or flag.startswith(
        ("-fplugin", "-fpass-plugin", "-mllvm", "-Wl,")
    ):
        raise ValueError(f"{flag!r} would change what is built or load foreign code; use -D, -f..., -m..., -l, -std=")
    return flag


Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
Function = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*$")]
Flag = Annotated[str, AfterValidator(_plain_flag)]


class SuiteProgram(Record):
    """One C or C++ file of a suite, with arguments for each input and the digests of what it must print."""

    name: Name
    about: str
    domain: str = "general"
    language: Language = "c"
    split: Split = "dev"
    core12: bool = False
    """One of the few that stand for the whole suite in tables of advisors."""
    cflags: tuple[Flag, ...] = ()
    """Flags that the program needs to build, or to give the same output on every target."""
    kernels: tuple[Function, ...] = ()
    """Functions that do the work: without any one of them the output must change."""
    small: tuple[str, ...] = ()
    args: tuple[str, ...]
    large: tuple[str, ...] = ()
    hidden_args: tuple[str, ...]
    expected: dict[InputName, Digest] = {}
    """sha256 of the standard output for each input."""

    @property
    def filename(self) -> str:
        """Name of the source file, beside the YAML file."""
        return self.name + SUFFIXES[self.language]

    def arguments(self, name: InputName) -> tuple[str, ...]:
        """Return the arguments of an input; empty if the suite has none of that name."""
        inputs: dict[InputName, tuple[str, ...]] = {
            "small": self.small,
            "args": self.args,
            "large": self.large,
            "hidden_args": self.hidden_args,
        }
        return inputs[name]

    @property
    def inputs(self) -> tuple[InputName, ...]:
        """Names of the inputs that the program has, smallest first."""
        return tuple(name for name in INPUTS if self.arguments(name))


class Suite(Record):
    """The programs of one YAML file, in its order."""

    path: Path
    programs: tuple[SuiteProgram, ...]

    def source(self, program: SuiteProgram) -> Path:
        """Return the path of a program's file."""
        return self.path.parent / program.filename

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains, in the order in which they first appear."""
        return tuple(dict.fromkeys(p.domain for p in self.programs))


def load_suite(path: Path = SHIPPED) -> Suite:
    """Read a suite: a mapping from program names to their fields.

    Raises:
        BadInput: the file cannot be read, is no such mapping, or a program is wrong (its name and field are named).
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}.", "Give a readable YAML file.") from None
    try:
        entries = yaml.load(text, Loader=_Loader)  # a SafeLoader
    except yaml.YAMLError as error:
        raise BadInput(f"{path} is not YAML: {error}", "Mend that line.") from None
    if not isinstance(entries, dict) or not entries:
        raise BadInput(f"{path} holds no programs.", "Write `name:` and below it about, args, hidden_args, kernels.")
    suite = Suite(path=path, programs=tuple(_program(path, name, fields) for name, fields in entries.items()))
    for program in suite.programs:
        if not suite.source(program).is_file():
            raise BadInput(
                f"{path}: program {program.name!r}: there is no file {str(suite.source(program))!r}.",
                "The source lies beside the YAML file and has the program's name; `language: c++` makes it .cpp.",
            )
    return suite


def select(
    suite: Suite,
    *,
    names: tuple[str, ...] = (),
    split: Split | None = None,
    domain: str | None = None,
    core12: bool = False,
) -> tuple[SuiteProgram, ...]:
    """Return the programs that meet all that is asked, in the suite's order.

    Raises:
        BadInput: a name or the domain is not in the suite, or nothing meets all of it.
    """
    known = [p.name for p in suite.programs]
    for name in names:
        if name not in known:
            raise BadInput(f"{suite.path} has no program {name!r}.", _nearest(name, known))
    if domain is not None and domain not in suite.domains:
        raise BadInput(f"{suite.path} has no domain {domain!r}.", _nearest(domain, list(suite.domains)))
    chosen = tuple(
        p
        for p in suite.programs
        if (not names or p.name in names)
        and split in (None, p.split)
        and domain in (None, p.domain)
        and (p.core12 or not core12)
    )
    if not chosen:
        raise BadInput(f"No program of {suite.path} meets all that is asked.", "Ask for less.")
    return chosen


class _Loader(yaml.SafeLoader):
    """A SafeLoader that refuses a key that comes twice, where YAML would keep the last silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} comes twice", key.start_mark)
            seen.add(key.value)
        return dict(super().construct_mapping(node, deep))


def _program(path: Path, name: object, fields: object) -> SuiteProgram:
    if not isinstance(fields, dict):
        raise BadInput(f"{path}: program {name!r} has no fields.", "It needs about, args and hidden_args.")
    if "name" in fields:
        raise BadInput(f"{path}: program {name!r}, field 'name': is not needed.", "The key above is the name.")
    try:
        program = SuiteProgram.model_validate({"name": name, **fields})
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        fix = "Quote numbers: every argument is a string." if first["type"] == "string_type" else "Mend that field."
        if first["type"] == "extra_forbidden":
            fix = _nearest(field, list(SuiteProgram.model_fields))
        message = f"{path}: program {name!r}, field {field!r}: {first['msg']} (found {first['input']!r:.80})."
        raise BadInput(message, fix) from None
    if program.hidden_args == program.args:
        raise BadInput(
            f"{path}: program {program.name!r}, field 'hidden_args': is the same as args.",
            "Give another seed and another size: it must show what holds only for the tuning input.",
        )
    for recorded in program.expected:
        if recorded not in program.inputs:
            raise BadInput(
                f"{path}: program {program.name!r}, field 'expected.{recorded}': there is no input {recorded!r}.",
                f"Add `{recorded}: [...]`, or remove the digest.",
            )
    return program


def _nearest(given: str, known: list[str]) -> str:
    close = difflib.get_close_matches(given, known, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(known)}."
