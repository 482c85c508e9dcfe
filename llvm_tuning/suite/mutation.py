"""Empties a function in C or C++ source text, to see whether a program's output notices."""

import re

from core.errors import BadInput
from llvm_tuning.suite.catalogue import Language

_NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'|^[ \t]*\#(?:\\\n|[^\n])*""",
    re.DOTALL | re.MULTILINE,
)
"""Comments, literals and preprocessor lines: a name or brace in them means nothing here."""

_SPECIFIERS = re.compile(
    r"\b(?:static|inline|extern|constexpr|virtual|explicit|friend|_Noreturn|noreturn)\b|\[\[.*?\]\]"
)
_TEMPLATE = re.compile(r"\btemplate\s*<")
_ACCESS = re.compile(r"\b(?:public|private|protected)\s*:")


def emptied(source: str, function: str, language: Language) -> str:
    """Return the source with every definition of the function doing nothing: `{}`, or a return of zero.

    Overloads, overriders and specialisations of the same name are all emptied. It reads text, not syntax: it wants
    a plain definition, with the return type before the name (no macro that makes it, no `auto`).

    Raises:
        BadInput: the source does not define the function.
    """
    code = _NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), source)
    parts: list[str] = []
    done = 0
    for found in re.finditer(rf"\b{re.escape(function)}\s*\(", code):
        body = _body_start(code, found.end() - 1)
        if found.start() < done or body is None:
            continue
        end = _closing(code, body, "{", "}") + 1
        parts += [source[done:body], _nothing(_return_type(code, found.start()), language)]
        done = end
    if not parts:
        raise BadInput(
            f"No definition of the function {function!r} is in the source.", "Name a function under kernels."
        )
    return "".join([*parts, source[done:]])


def _body_start(code: str, parenthesis: int) -> int | None:
    """Return where the body opens after the parameter list; None if this is a call or a declaration."""
    after = _closing(code, parenthesis, "(", ")") + 1
    found = re.compile(r"(?:\s|\bconst\b|\bnoexcept\b|\boverride\b|\bfinal\b)*\{").match(code, after)
    return found.end() - 1 if found else None


def _closing(code: str, opening: int, left: str, right: str) -> int:
    """Return the index of the bracket that closes the one at `opening` (the text's end if none does)."""
    depth = 0
    for index in range(opening, len(code)):
        if code[index] == left:
            depth += 1
        elif code[index] == right:
            depth -= 1
            if depth == 0:
                return index
    return len(code) - 1


def _return_type(code: str, name: int) -> str:
    """Return the words before a function's name, without specifiers and template heads."""
    start = max(code.rfind(mark, 0, name) for mark in ";{}") + 1
    head = _ACCESS.sub(" ", code[start:name])
    while template := _TEMPLATE.search(head):
        head = head[: template.start()] + head[_closing(head, template.end() - 1, "<", ">") + 1 :]
    head = re.sub(r"[\w:<>]+::\s*$", "", head)  # Class::name
    return " ".join(_SPECIFIERS.sub(" ", head).split())


def _nothing(returned: str, language: Language) -> str:
    if returned == "void":
        return "{}"
    return f"{{ return ({returned}){{0}}; }}" if language == "c" else "{ return {}; }"
