"""Prompt templates. Whatever is filled in counts as untrusted data and is fenced, unless it is marked as trusted."""

import importlib.resources
import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jinja2
import jinja2.sandbox

from core.llm.types import TemplateRef
from core.records import digest_bytes

FENCE_CAP_CHARS = 4000
"""Length of a fenced value where the template names none."""

_MARKUP = re.compile(r"<(?=[|/!\[]|[A-Za-z_]+>)|(?<=\|)>|\[(?=/?INST\])")
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


class Trusted(str):
    """Text that this project wrote itself and that may stand in the instruction part of a prompt."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendered:
    """A filled-in template."""

    text: str
    template: TemplateRef


def fence(value: Any, cap_chars: int = FENCE_CAP_CHARS) -> Trusted:
    r"""Return data as one JSON text that cannot be mistaken for instructions.

    Strings lose control, format (bidirectional, zero-width) and private characters except tab and newline; what is
    longer than the cap is cut, and the cut is said; the beginnings of chat-template tokens such as `<|im_end|>` or
    `</s>` are written as JSON escapes, so that no tokenizer takes them for its own.
    """
    text = json.dumps(_clean(value, cap_chars), ensure_ascii=False)
    if len(text) > cap_chars + 2 and not isinstance(value, str):
        text = json.dumps(_clean(text, cap_chars), ensure_ascii=False)
    return Trusted(_MARKUP.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def visible(text: str) -> str:
    """Return the text without control, format, surrogate and private characters, except tab and newline."""
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in _INVISIBLE)


def _clean(value: Any, cap_chars: int) -> Any:
    if isinstance(value, str):
        text = visible(value)
        return text if len(text) <= cap_chars else f"{text[:cap_chars]} [... {len(text) - cap_chars} characters cut]"
    if isinstance(value, dict):
        return {visible(str(name))[:200]: _clean(item, cap_chars) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item, cap_chars) for item in value]
    return value


def _finalize(value: Any) -> Any:
    if isinstance(value, Trusted) or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    if isinstance(value, jinja2.Undefined):
        return str(value)  # raises, naming the variable
    return fence(value)


class Prompts:
    """The templates of one package folder, rendered with every value fenced.

    In a template, `{{ remarks }}` is fenced at the default cap, `{{ remarks | fence(800) }}` at another, and a value
    that the caller wrapped in `Trusted` is inserted as it is. A missing variable is an error.

    Args:
        package: import name of the package that holds the templates, as data files.
        folder: folder inside the package.
    """

    def __init__(self, package: str, folder: str = "prompts") -> None:
        self._package = package
        self._folder = folder
        self._environment = environment(self._source)

    def render(self, name: str, /, **values: Any) -> Rendered:
        """Return the template `name` filled in.

        Raises:
            jinja2.TemplateError: no such template, a mistake in it, or a variable that was not given.
        """
        source = self._source(name)
        if source is None:
            raise jinja2.TemplateNotFound(f"{self._package}/{self._folder}/{name}")
        text = self._environment.get_template(name).render(**values)
        reference = TemplateRef(id=f"{self._package}/{self._folder}/{name}", sha256=digest_bytes(source.encode()))
        return Rendered(text=text, template=reference)

    def _source(self, name: str) -> str | None:
        if ".." in name.split("/"):
            return None
        file = importlib.resources.files(self._package).joinpath(self._folder, name)
        return file.read_text(encoding="utf-8") if file.is_file() else None


def environment(source: Callable[[str], str | None]) -> jinja2.Environment:
    """Return the sandboxed, strict environment in which all prompts are rendered."""
    made = jinja2.sandbox.SandboxedEnvironment(
        loader=jinja2.FunctionLoader(source),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    made.filters["fence"] = fence
    return made
