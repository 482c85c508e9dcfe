"""The table of the shipped programs in docs/suite.md: `python -m llvm_tuning.suite.table` brings it up to date."""

from pathlib import Path

from core.errors import BadInput
from llvm_tuning.suite.catalogue import Suite, load_suite

PAGE = Path(__file__).parents[2] / "docs" / "suite.md"
BEGIN, END = "<!-- table: made by llvm_tuning.suite.table -->", "<!-- end of table -->"


def table(suite: Suite) -> str:
    """Return the programs as a Markdown table, by domain."""
    lines = ["| domain | program | language | split | what it does | tunes with |", "|---|---|---|---|---|---|"]
    for domain in suite.domains:
        for p in suite.programs:
            if p.domain != domain:
                continue
            split = f"{p.split}, core12" if p.core12 else p.split
            language = "C" if p.language == "c" else "C++"
            lines.append(f"| {domain} | `{p.name}` | {language} | {split} | {p.about} | `{' '.join(p.args)}` |")
    return "\n".join(lines)


def with_table(page: str, suite: Suite) -> str:
    """Return the page with its table replaced by the suite's.

    Raises:
        BadInput: the page has no place for the table.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise BadInput("The page has no marks for the table.", f"Put {BEGIN} and {END} on lines of their own.")
    return f"{before}{BEGIN}\n{table(suite)}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), load_suite()), encoding="utf-8")
