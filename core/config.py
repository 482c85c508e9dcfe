"""Typed configuration: dataclass schemas, YAML groups in `conf/`, and overrides, composed by Hydra.

A schema is a plain (frozen, keyword-only) dataclass. Its fields are declared with `option`, which holds the default,
the help and the command-line flag of the field in one place; `core.options.config_options` makes the flags from it.
Values a person gives, on the command line or in YAML, reach code only as an instance of the schema.
"""

import copy
import dataclasses
import difflib
import functools
import os
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from core.errors import BadInput, ComplabError

if TYPE_CHECKING:
    from omegaconf import DictConfig

T = TypeVar("T")

CONF_DIR = Path(__file__).resolve().parents[1] / "conf"
"""The YAML groups of this checkout: complab is installed editable, so `conf/` is never packaged."""

_PRIMITIVES = {int: "an integer", float: "a number", bool: "true or false", str: "text", Path: "a path"}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class OptionSpec:
    """How a field is shown to people: the metadata that `option` and `argument` leave on a field."""

    help: str
    flag: str | None = None
    """The command-line alias of this field's override, for example `--budget`."""
    positional: bool = False
    """The field is filled by a bare word of the command line."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """One leaf or group of a schema, by its dotted path."""

    path: str
    hint: Any
    default: Any
    """`dataclasses.MISSING` when the key must be given."""
    spec: OptionSpec | None


@overload
def option(default: T, *, help: str, flag: str | None = None) -> T: ...
@overload
def option(*, help: str, flag: str | None = None) -> Any: ...
def option(default: Any = dataclasses.MISSING, *, help: str, flag: str | None = None) -> Any:
    """Declare a field of a schema, once: its default, its help and, where it has one, its command-line flag.

    Args:
        default: the default; lists and nested dataclasses too. Left out: the key must be given.
        help: one sentence; units where there are any.
        flag: the long option that is an alias of the override `field=value`.
    """
    return _declare(default, OptionSpec(help=help, flag=flag))


@overload
def argument(default: T, *, help: str) -> T: ...
@overload
def argument(*, help: str) -> Any: ...
def argument(default: Any = dataclasses.MISSING, *, help: str) -> Any:
    """Declare a field that a bare word of the command line fills; fields take the bare words in their order."""
    return _declare(default, OptionSpec(help=help, positional=True))


def keys(schema: type[Any], prefix: str = "") -> Iterator[Key]:
    """Yield every key of a schema, depth first, groups (nested dataclasses) before their leaves."""
    hints = get_type_hints(schema, include_extras=True)
    for field in dataclasses.fields(schema):
        hint, path = hints[field.name], prefix + field.name
        yield Key(path=path, hint=hint, default=_default(field), spec=field.metadata.get("complab"))
        if dataclasses.is_dataclass(hint):
            yield from keys(hint, prefix=path + ".")  # type: ignore[arg-type]


def override(path: str, value: Any) -> str:
    """Return the Hydra override that sets a key to exactly this value."""
    return f"{path}={_literal(value)}"


def load(name: str, overrides: Sequence[str], schema: type[T], conf: Path | None = None) -> T:
    """Compose `conf/job/NAME.yaml` with overrides and return it as an instance of its schema.

    Args:
        name: the job: the name of the command whose configuration this is.
        overrides: Hydra overrides, for example `budget=24` or `experiment=tune_demo`; later ones win.
        schema: the dataclass of the result.
        conf: the folder of YAML groups, where it is not the checkout's.

    Raises:
        BadInput: an unknown key, a wrong type or value, an unknown choice of a group, a missing value; it names the
            key, the near ones and what is allowed.
        ComplabError: the folder `conf/` or the job's file is not there.
    """
    from hydra import compose, initialize_config_dir

    folder = require_conf(conf)
    register(name, schema)
    refuse_malformed(overrides, folder)
    with _ReadableErrors(schema, folder):
        with initialize_config_dir(config_dir=str(folder), job_name="complab", version_base="1.3"):
            composed = compose(config_name="config", overrides=[*overrides, f"job={name}"])
        return typed(composed, schema, folder)


def refuse_malformed(overrides: Sequence[str], conf: Path) -> None:
    """Refuse words that are not single-valued overrides, naming the word.

    Raises:
        BadInput: the first such word.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    parser = OverridesParser.create()
    for word in overrides:
        try:
            parsed = parser.parse_override(word)
        except HydraException:
            key, equals, value = word.partition("=")
            fix = f"""Quote the value, twice: '{key}="{value}"'.""" if equals else "Write key=value."
            raise BadInput(f"'{word}' is not an override.", fix) from None
        if parsed.value() is None and (offered := choices(parsed.key_or_group, conf)):
            raise BadInput(f"The group '{parsed.key_or_group}' cannot be null.", f"Allowed: {', '.join(offered)}.")
        if parsed.is_sweep_override():
            raise BadInput(
                f"'{word}' holds several values, and one run takes one.",
                "A list is [a,b]; quote text that holds a comma, or sweep with `python -m experiments.launch -m`.",
            )


def register(name: str, schema: type[Any]) -> None:
    """Enter a schema into Hydra's ConfigStore as `schema/NAME`, where `conf/job/NAME.yaml` finds it."""
    from hydra.core.config_store import ConfigStore

    ConfigStore.instance().store(group="schema", name=name, node=_mirror(schema), package="_global_")  # type: ignore[arg-type]


def require_conf(conf: Path | None = None) -> Path:
    """Return the folder of YAML groups.

    Raises:
        ComplabError: it is not there, so complab was not installed from a checkout.
    """
    folder = (conf or CONF_DIR).resolve()
    if not (folder / "config.yaml").is_file():
        raise ComplabError(
            f"The configuration folder {folder} holds no config.yaml.",
            "complab runs from its checkout: clone the repository and type `make setup` there.",
        )
    return folder


def typed(config: "DictConfig", schema: type[T], conf: Path = CONF_DIR) -> T:
    """Return a composed configuration as an instance of its schema.

    Raises:
        BadInput: as `load`.
    """
    from omegaconf import OmegaConf
    from pydantic import TypeAdapter, ValidationError

    known = {key.path: key for key in keys(schema)}
    with _ReadableErrors(schema, conf):
        missing = sorted(OmegaConf.missing_keys(config))
        if missing:
            raise BadInput(f"The key '{missing[0]}' has no value.", _how_to_give(known[missing[0]]))
        values = OmegaConf.to_container(config, resolve=True)
    unknown = sorted(_paths(values) - known.keys())
    unknown = [path for path in unknown if not _inside_a_mapping(path, known)]
    if unknown:
        raise _unknown_key(unknown[0], schema, conf)
    try:
        return TypeAdapter(schema).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise _wrong_value(known, ".".join(map(str, first["loc"])), first["input"], first["msg"]) from None


def describe(hint: Any) -> str:
    """Return what a type hint allows, in words."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return describe(args[0])
    if origin is Literal:
        return "one of " + ", ".join(map(str, args))
    if origin in (Union, types.UnionType):
        return " or ".join("null" if arg is type(None) else describe(arg) for arg in args)
    if origin in (list, tuple):
        return f"a list [a,b,...], each {describe(args[0])}"
    if origin is dict:
        return f"a mapping {{key:value,...}}, each value {describe(args[1])}"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return "one of " + ", ".join(hint.__members__)
    if dataclasses.is_dataclass(hint):
        return "a group with the keys " + ", ".join(field.name for field in dataclasses.fields(hint))
    return _PRIMITIVES.get(hint, str(hint))


def choices(group: str, conf: Path | None = None) -> list[str]:
    """Return the choices of a YAML group, sorted; empty when there is no such group."""
    return sorted(file.stem for file in ((conf or CONF_DIR) / group).glob("*.yaml"))


def _declare(default: Any, spec: OptionSpec) -> Any:
    metadata = {"complab": spec}
    if isinstance(default, list | dict) or (dataclasses.is_dataclass(default) and not isinstance(default, type)):
        return dataclasses.field(default_factory=functools.partial(copy.copy, default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def _default(field: "dataclasses.Field[Any]") -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


@functools.cache
def _mirror(schema: Any) -> type[Any]:
    """Return the schema as OmegaConf can hold it: not frozen (it would refuse overrides), without Literal or Annotated.

    What the mirror is too weak to check, `typed` checks against the schema itself.
    """
    from omegaconf import MISSING

    hints = get_type_hints(schema, include_extras=True)
    fields: list[tuple[str, Any, Any]] = []
    for field in dataclasses.fields(schema):
        default = _default(field)
        if default is dataclasses.MISSING:
            entry = dataclasses.field(default=MISSING)
        else:
            entry = dataclasses.field(default_factory=functools.partial(_mirrored, default))
        fields.append((field.name, _mirror_hint(hints[field.name]), entry))
    return dataclasses.make_dataclass(schema.__name__, fields)


def _mirror_hint(hint: Any) -> Any:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _mirror_hint(args[0])
    if origin is Literal:
        kinds = {type(value) for value in args}
        return kinds.pop() if len(kinds) == 1 else Any
    if origin in (Union, types.UnionType):
        return Union[tuple(_mirror_hint(arg) for arg in args)]  # noqa: UP007 - built from a runtime tuple
    if origin in (list, tuple):
        return list[_mirror_hint(args[0])]  # type: ignore[misc]
    if origin is dict:
        return dict[args[0], _mirror_hint(args[1])]  # type: ignore[misc,valid-type]
    return _mirror(hint) if dataclasses.is_dataclass(hint) else hint  # type: ignore[arg-type]


def _mirrored(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        inner = {field.name: _mirrored(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return _mirror(type(value))(**inner)
    return list(value) if isinstance(value, tuple) else value


def _literal(value: Any) -> str:
    """Return a value in Hydra's override grammar; text is quoted so that nothing in it is read as grammar."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_literal, value)) + "]"
    text = value.name if isinstance(value, Enum) else os.fspath(value)
    text = re.sub(r"(\\*)\$\{", r"\1\1\\${", text)  # to OmegaConf ${ would begin an interpolation
    text = re.sub(r"(\\*)('|$)", lambda run: run[1] * 2 + (r"\'" if run[2] else ""), text)
    return f"'{text}'"


def _paths(values: Any, prefix: str = "") -> set[str]:
    if not isinstance(values, Mapping):
        return set()
    paths = {f"{prefix}{name}" for name in values}
    return paths.union(*(_paths(inner, f"{prefix}{name}.") for name, inner in values.items()))


def _inside_a_mapping(path: str, known: Mapping[str, Key]) -> bool:
    return any(get_origin(key.hint) is dict and path.startswith(key.path + ".") for key in known.values())


def _how_to_give(key: Key) -> str:
    allowed = describe(key.hint)
    if key.spec is None or not (key.spec.flag or key.spec.positional):
        return f"Give `{key.path}=...`: {allowed}."
    word = key.spec.flag or key.path.upper()
    return f"Give {word} (or `{key.path}=...`): {allowed}. {key.spec.help}"


class _ReadableErrors:
    """Context manager: what Hydra and OmegaConf raise becomes BadInput that names the key and what is allowed."""

    def __init__(self, schema: type[Any], conf: Path) -> None:
        self.schema, self.conf = schema, conf

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        from hydra.errors import HydraException
        from omegaconf.errors import OmegaConfBaseException
        from yaml import YAMLError

        if isinstance(error, HydraException | OmegaConfBaseException | YAMLError | ValueError):
            raise explain(error, self.schema, self.conf) from None


def explain(error: BaseException, schema: type[Any], conf: Path) -> BadInput:
    """Return Hydra's or OmegaConf's exception as an error that names the key and what would be right."""
    from hydra.errors import MissingConfigException
    from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

    text = str(error)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, choice = error.missing_cfg_file.rpartition("/")
        listed = [Path(name).stem for name in error.options or ()]
        return BadInput(f"There is no '{choice}' in the group '{group}'.", _nearest(choice, sorted(listed)))
    unchosen = re.search(r"You must specify '([^']+)'", text)
    if unchosen:
        offered = ", ".join(choices(unchosen[1], conf)) or "none yet"
        return BadInput(f"No {unchosen[1]} is chosen.", f"Give {unchosen[1]}=NAME ({offered}) or experiment=NAME.")
    source = re.search(r"In '([^']+)'", text)
    where = f"{conf / source[1]}.yaml: " if source else ""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OmegaConfBaseException):
        cause = cause.__cause__ or cause.__context__
    refused = re.search(r"Could not override '([^']+)'", text)
    if isinstance(cause, ConfigKeyError | ConfigAttributeError):
        return _unknown_key(refused[1] if refused else str(cause.full_key), schema, conf, where)
    known = {key.path: key for key in keys(schema)}
    if cause is not None and cause.full_key in known:
        value = re.search(r"[Vv]alue '(.*?)'", str(cause))
        found = value[1] if value else None
        return _wrong_value(known, cause.full_key, found, str(cause).splitlines()[0], where)
    return BadInput(f"{where}{' '.join(text.split())}", "See CONTRIBUTING.md for how configurations are written.")


def _unknown_key(path: str, schema: type[Any], conf: Path, where: str = "") -> BadInput:
    groups = [folder.name for folder in conf.iterdir() if folder.is_dir() and folder.name != "job"]
    known = sorted({*groups, *(key.path for key in keys(schema))})
    return BadInput(f"{where}There is no key '{path}'.", _nearest(path, known))


def _wrong_value(known: Mapping[str, Key], location: str, value: Any, message: str, where: str = "") -> BadInput:
    """Name the deepest key that holds the location: pydantic appends list indices and union tags to it."""
    path = max((key for key in known if location == key or location.startswith(key + ".")), key=len, default=location)
    allowed = describe(known[path].hint) if path in known else "another value"
    shown = "" if value is None else f" is {value!r}"
    return BadInput(
        f"{where}The key '{path}'{shown}: {message[0].lower()}{message[1:].rstrip('.')}.", f"It takes {allowed}."
    )


def _nearest(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, n=3, cutoff=0.6)
    last = word.rpartition(".")[2]
    near += [path for path in known if path.rpartition(".")[2] == last and path not in near]
    if near:
        return f"Near ones: {', '.join(near)}."
    return f"Allowed: {', '.join(known)}." if known else "There are none."
