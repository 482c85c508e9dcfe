"""`python -m experiments.launch [-m] experiment=NAME [key=value ...]`: what `complab` runs, from a file, or many of it.

With Hydra 1.3.8 the multirun flag must come first (or last): `experiment=x -m seed=1,2` is refused by its parser.
A sweep's failed run is reported and the others go on; the exit code is that of the first failure.
"""

import os
import pkgutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.config import explain, register, require_conf, typed
from experiments.exits import DONE, guarded, report

if TYPE_CHECKING:
    from omegaconf import DictConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """What a command runs, by name, so that only the chosen one's code is loaded."""

    schema: str
    """`module:attribute` of its configuration's dataclass; the module must be cheap to import."""
    run: str
    """`module:attribute` of a callable that takes the configuration."""


JOBS: Mapping[str, Job] = {
    "tune": Job(schema="llvm_tuning.configs:TuneConfig", run="llvm_tuning.cli:launch"),
}
"""By the name of the `complab` command and of `conf/job/NAME.yaml`."""


def launch(jobs: Mapping[str, Job] = JOBS, conf: Path | None = None) -> int:
    """Run the command line in `sys.argv`, which Hydra reads, and return the exit code."""
    import hydra
    from hydra.core.hydra_config import HydraConfig
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    folder = require_conf(conf)
    schemas = {name: pkgutil.resolve_name(job.schema) for name, job in jobs.items()}
    for name, schema in schemas.items():
        register(name, schema)
    codes: list[int] = []  # of what failed

    def run_one(config: "DictConfig") -> None:
        name = HydraConfig.get().runtime.choices["job"]
        try:
            pkgutil.resolve_name(jobs[name].run)(typed(config, schemas[name], folder))
        except BrokenPipeError:
            raise
        except Exception as error:
            codes.append(report(error))

    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises to us instead of printing and leaving with its own exit code
    try:
        hydra.main(config_path=str(folder), config_name="config", version_base="1.3")(run_one)()
    except (HydraException, OmegaConfBaseException) as error:
        raise explain(error, _schema_of(error, schemas.values()), folder) from None
    return codes[0] if codes else DONE


def _schema_of(error: Exception, schemas: Any) -> type[Any]:
    """Return the schema that Hydra's message is about: it names the type that refused the key or value."""
    named = [schema for schema in schemas if f"object_type={schema.__name__}" in f"{error} {error.__cause__}"]
    return named[0] if named else dataclass(type("AnyJob", (), {}))


def main() -> None:
    """Run the program `python -m experiments.launch`."""
    sys.exit(guarded(launch))


if __name__ == "__main__":
    main()
