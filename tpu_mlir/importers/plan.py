"""Which static programs a model is compiled into: lengths, history, masks."""

from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from core.errors import BadInput
from core.records import Record
from tpu_mlir.importers.checkpoints.model_config import ModelConfig

Mask = Literal["tile", "input"]
"""How prefill is causal: by one small triangle, kept as a weight and reused; or by a mask that the host gives."""

MASK_FILL = -10000.0
"""What masks add where a key is hidden: finite in every float type, and exp of it is zero in f32."""


class Plan(Record):
    """The lengths of the static programs. One token is one row."""

    seq: int = Field(gt=1)
    """Rows of the key/value cache: prompt and answer together."""
    prefill: int = Field(gt=0)
    """Rows of the prefill programs; longer prompts are cut into pieces of this length."""
    decode: tuple[int, ...] = ()
    """Cache rows of the shorter decode programs, ascending; one for `seq` rows is always built."""
    history: bool = False
    """Build the prefill programs that continue a history."""
    mask: Mask = "tile"
    tile: int = Field(default=256, gt=1)
    """Side of the reused triangle; four times the lanes of the chip."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.prefill > self.seq:
            raise ValueError(f"prefill {self.prefill} is longer than seq {self.seq}")
        if list(self.decode) != sorted({*self.decode}) or any(not 0 < d < self.seq for d in self.decode):
            raise ValueError(f"decode lengths {self.decode} must ascend and lie between 0 and seq {self.seq}")
        return self

    def check(self, config: ModelConfig) -> None:
        """Refuse a plan that the model was not made for.

        Raises:
            BadInput: more positions than the model has.
        """
        if self.seq > config.max_positions:
            raise BadInput(
                f"A sequence of {self.seq} is longer than the {config.max_positions} positions of the model.",
                f"Compile with --seq {config.max_positions} or less.",
            )


def plan_for(**lengths: Any) -> Plan:
    """Return a plan from what a person asked for.

    Raises:
        BadInput: lengths that contradict each other.
    """
    try:
        return Plan(**lengths)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise BadInput(f"These lengths do not fit: {f'{where}: ' if where else ''}{first['msg']}.") from error
