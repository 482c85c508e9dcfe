"""The typed configuration of a tuning run; every flag of `complab tune` is a field here."""

from dataclasses import dataclass, field
from typing import Literal

from core.config import argument, option
from core.llm.configs import ModelConfig
from llvm_tuning.toolchain.semantics import Semantics

AdvisorName = Literal["expert", "hybrid", "llm", "random", "evolution", "bandit", "bayesian"]


@dataclass(frozen=True, kw_only=True)
class MeasureConfig:
    """How sure a decision must be."""

    alpha: float = option(0.01, help="Error rate of one faster/slower decision.", flag="--alpha")
    screen_s: float = option(1.0, help="Seconds of samples that screen a candidate.")
    prove_s: float = option(6.5, help="Most seconds of samples that prove one.")
    margin: float = option(0.01, help="`same` means: inside plus or minus this share.", flag="--margin")


@dataclass(frozen=True, kw_only=True)
class TuneConfig:
    """What to tune, who advises, and how much may be spent."""

    program: str = argument(help="Path of a C or C++ file, or the name of a shipped program.")
    cflags: str = option("", help="Extra compiler and linker flags, quoted as one string.", flag="--cflags")
    args: str = option("", help="The program's arguments, quoted as one string.", flag="--args")
    stdin: str | None = option(None, help="File that the program reads from standard input.", flag="--stdin")
    input: tuple[str, ...] = option((), help="File for the program's working directory (repeatable).", flag="--input")
    output: tuple[str, ...] = option((), help="File it writes that must stay equal (repeatable).", flag="--output")
    check_stderr: bool = option(False, help="Compare standard error as well.", flag="--check-stderr")
    advisor: AdvisorName = option("expert", help="Who proposes settings.", flag="--advisor")
    semantics: Semantics = option("exact", help="The most that an option may do to results.", flag="--semantics")
    budget: int = option(24, help="Distinct builds that may be checked and measured.", flag="--budget")
    batch: int = option(4, help="Proposals between two looks at the results.")
    seed: int = option(0, help="Seed of everything random.", flag="--seed")
    run_timeout_s: float = option(10.0, help="Longest run of the program, in seconds.", flag="--timeout")
    runs: str = option("runs", help="Directory that holds all runs.", flag="--runs")
    name: str | None = option(None, help="Name of the run; default: program and advisor.", flag="--name")
    new: bool = option(False, help="Start another run even if the same one exists.", flag="--new")
    measure: MeasureConfig = field(default_factory=MeasureConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
