"""Passes by name: `fold-reshapes, canonicalize{state=lowered}` as people and IR tests write them."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, get_type_hints

from core.errors import BadInput
from tpu_mlir.transforms.canonicalize import Canonicalize
from tpu_mlir.transforms.fold_casts import FoldCasts
from tpu_mlir.transforms.fold_reshapes import FoldReshapes
from tpu_mlir.transforms.lower_to_tpu import LowerToTpu
from tpu_mlir.transforms.passes import Pass
from tpu_mlir.transforms.strip_io_casts import StripIoCasts

PASSES: Mapping[str, type[Any]] = {
    kind.name: kind for kind in (Canonicalize, FoldReshapes, LowerToTpu, FoldCasts, StripIoCasts)
}
"""Every pass by its name."""


def parse_pipeline(text: str) -> tuple[Pass, ...]:
    """Return the passes of a pipeline: names separated by commas, options as `{name=value name=value}`.

    Raises:
        BadInput: an unknown pass or option, or a value of the wrong kind.
    """
    rest, passes = text.strip(), []
    while rest:
        found = re.match(r"([a-z0-9-]+)(?:\{([^}]*)\})?\s*(?:,\s*|$)", rest)
        if found is None:
            raise BadInput(f"The pipeline cannot be read from here: {rest!r}.", "Write name{option=value}, name, ...")
        passes.append(_make(found[1], found[2] or ""))
        rest = rest[found.end() :]
    return tuple(passes)


def _make(name: str, options: str) -> Pass:
    kind = PASSES.get(name)
    if kind is None:
        raise BadInput(f"There is no pass {name}.", f"There are {', '.join(sorted(PASSES))}.")
    hints = get_type_hints(kind)
    fields = {f.name: hints[f.name] for f in dataclasses.fields(kind)}
    values = {}
    for option in options.split():
        key, _, value = option.partition("=")
        if key not in fields:
            raise BadInput(f"The pass {name} has no option {key}.", f"It has {', '.join(fields) or 'none'}.")
        values[key] = _value(name, key, value, fields[key])
    try:
        made: Pass = kind(**values)
    except TypeError as error:
        raise BadInput(f"The pass {name} cannot be made: {error}.") from error
    return made


def _value(name: str, key: str, text: str, kind: Any) -> Any:
    try:
        return {"true": True, "false": False}[text] if kind is bool else kind(text)
    except (KeyError, ValueError) as error:
        raise BadInput(f"Option {key} of the pass {name} cannot be {text!r}.") from error
