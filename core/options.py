"""Command-line options made from a configuration schema: a flag is an alias of exactly one override."""

import os
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

import click

from core.config import Key, choices, keys, override
from core.errors import BadInput

P = ParamSpec("P")
R = TypeVar("R")

_OVERRIDE = re.compile(r"(\+{1,2}|~)?[A-Za-z_][\w./@:-]*=|~[A-Za-z_][\w./@:-]*$")
"""What a word must begin with to be an override. A file called so is given as ./a=b or by its key."""


def config_options(schema: type[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a click command the flags, the positional words and the `key=value` overrides of a schema.

    The command function receives them as one keyword argument `overrides: list[str]`, for `core.config.load`: first
    what the flags and bare words set, then the `key=value` words, in their order.
    """
    flagged = [key for key in keys(schema) if key.spec is not None and key.spec.flag]
    positional = [key for key in keys(schema) if key.spec is not None and key.spec.positional]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def command(**params: Any) -> Any:
            given = click.get_current_context().get_parameter_source
            words: tuple[str, ...] = params.pop("words")
            overrides = _bare_words(words, positional)
            for key in flagged:
                value = params.pop(_parameter(key))
                if given(_parameter(key)) is not click.core.ParameterSource.DEFAULT:
                    overrides.append(f"{key.path}={value}" if is_dataclass(key.hint) else override(key.path, value))
            overrides += [word for word in words if _OVERRIDE.match(word)]
            return function(overrides=overrides, **params)

        command.__doc__, command.__name__ = function.__doc__, function.__name__
        command.__dict__.update(function.__dict__)
        for key in reversed(flagged):
            command = _option(key)(command)
        metavar = " ".join([*(_bare_metavar(key) for key in positional), "[KEY=VALUE]..."])
        return click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar=metavar)(command)

    return decorate


def json_option(function: Callable[P, R]) -> Callable[P, R]:
    """Give a click command `--json [PATH]`: parameter `json_to`, a path, `-` for stdout, None when not asked for."""
    return click.option(
        "--json",
        "json_to",
        is_flag=False,
        flag_value="-",
        default=None,
        metavar="[PATH]",
        callback=_writable,
        help="Print one JSON object, or write it to PATH.",
    )(function)


def _writable(ctx: click.Context, param: click.Parameter, to: str | None) -> str | None:
    """Refuse, before any work is done, a path that the result could not be written to at its end."""
    if to is None or to == "-":
        return to
    if not to.endswith(".json"):  # click takes the word after --json, whatever it was meant for
        raise BadInput(f"--json takes a file name that ends in .json, not {to!r}.", "Put a bare --json last.")
    folder = Path(to).parent
    if Path(to).is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise BadInput(f"--json {to!r} cannot be written.", "Give a file in a directory that exists and is writable.")
    return to


def _bare_words(words: tuple[str, ...], positional: list[Key]) -> list[str]:
    bare = [word for word in words if not _OVERRIDE.match(word)]
    if len(bare) > len(positional):
        raise click.UsageError(
            f"Got unexpected extra argument '{bare[len(positional)]}': options are written key=value."
        )
    return [override(key.path, word) for key, word in zip(positional, bare, strict=False)]


def _bare_metavar(key: Key) -> str:
    name = key.path.upper()
    return name if key.default is MISSING else f"[{name}]"


def _parameter(key: Key) -> str:
    return "config_" + key.path.replace(".", "__")


def _option(key: Key) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    assert key.spec is not None
    assert key.spec.flag is not None
    flag = key.spec.flag
    settings: dict[str, Any] = {"default": None, "help": key.spec.help}
    hint = _bare(key.hint)
    if hint is bool:
        settings["is_flag"] = True
        flag = f"{flag}/--no-{flag.removeprefix('--')}" if key.default is True else flag
    elif get_origin(hint) in (list, tuple):
        settings |= {"multiple": True, "type": _click_type(_bare(get_args(hint)[0]), key)}
    else:
        settings["type"] = _click_type(hint, key)
    shown = key.default.name if isinstance(key.default, Enum) else key.default
    if shown is MISSING:
        settings["help"] += "  [required]"
    elif not is_dataclass(shown) and (shown or (shown == 0 and shown is not False)):
        # Shown only: config_options passes on what was given. Null, false and empty mean `not asked for`.
        settings |= {"default": shown, "show_default": True}
    return click.option(flag, _parameter(key), **settings)


def _bare(hint: Any) -> Any:
    """Strip Annotated and `| None`: a flag that is not given leaves null in place."""
    if get_origin(hint) is Annotated:
        return _bare(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        inner = [arg for arg in get_args(hint) if arg is not type(None)]
        return _bare(inner[0]) if len(inner) == 1 else str
    return hint


def _click_type(hint: Any, key: Key) -> "click.ParamType[Any]":
    if get_origin(hint) is Literal:
        return click.Choice([str(value) for value in get_args(hint)])
    if is_dataclass(hint):
        return click.Choice(choices(key.path))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return click.Choice(list(hint.__members__))
    simple: Mapping[Any, click.ParamType[Any]] = {int: click.INT, float: click.FLOAT, Path: click.Path(path_type=Path)}
    return simple.get(hint, click.STRING)
