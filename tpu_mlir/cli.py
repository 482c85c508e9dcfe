"""`complab tpu`: look at a model's programs at both dialect levels, run passes, compare the levels."""

from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from core.console import write_json
from core.errors import BadInput
from core.options import json_option

if TYPE_CHECKING:
    from tpu_mlir.verify.ladder import NetReport

_CHIP = click.option("--chip", default="bm1684x", show_default=True, help="Chip to lower for.")
_QUANT = click.option("--quant", default="auto", show_default=True, help="Mode: auto, f32, bf16, w4bf16 and so on.")
_GROUP = click.option(
    "--group-size", default=64, show_default=True, help="Inputs a group, where the mode packs floats."
)
_SYMMETRIC = click.option("--symmetric", is_flag=True, help="Pack floats about the middle, without zero points.")


@click.group()
def tpu() -> None:
    """Language models on an emulated TPU: TopOp and TpuOp, as real MLIR."""


@tpu.command()
def ops() -> None:
    """Print the tables of all ops, as in the documentation."""
    from tpu_mlir.dialects.optable import section

    click.echo(section())


@tpu.command()
@click.argument("file", type=click.File())
@click.option("--passes", default="", help="Such as 'fold-reshapes, lower-to-tpu{chip=bm1684x mode=bf16}'.")
@click.option("--names", is_flag=True, help="Print the names of tensors as locations.")
def opt(file: TextIO, passes: str, names: bool) -> None:
    """Read FILE as IR (- is standard input), verify it, run passes, print what they leave."""
    from tpu_mlir.dialects import adapter
    from tpu_mlir.transforms.passes import run_passes
    from tpu_mlir.transforms.pipeline import parse_pipeline

    pipeline = parse_pipeline(passes)
    module = adapter.parse(file.read())
    run_passes(module, pipeline)
    click.echo(adapter.print_module(module, names=names), nl=False)


@tpu.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--net", help="Program to print, such as block_0; without it, all are listed.")
@click.option("--level", type=click.Choice(["top", "tpu"]), default="top", show_default=True)
@click.option("--seq", default=512, show_default=True, help="Rows of the key/value cache.")
@click.option("--prefill", type=int, help="Rows of the prefill programs.  [default: seq]")
@click.option("--history", is_flag=True, help="Also the prefill programs that continue a history.")
@click.option("--sample", is_flag=True, help="End in logits, a greedy head and a sample head.")
@_CHIP
@_QUANT
@_GROUP
@_SYMMETRIC
def ir(
    model: Path,
    net: str | None,
    level: str,
    seq: int,
    prefill: int | None,
    history: bool,
    sample: bool,
    chip: str,
    quant: str,
    group_size: int,
    symmetric: bool,
) -> None:
    """Print a program of MODEL (a Hugging Face directory or a GGUF file) as MLIR."""
    from tpu_mlir.chips.chip import chip_named
    from tpu_mlir.dialects import adapter
    from tpu_mlir.importers.auto_mode import lowering_for
    from tpu_mlir.importers.checkpoints.checkpoint import open_checkpoint
    from tpu_mlir.importers.decoder_pieces import pieces
    from tpu_mlir.importers.layer_weights import LayerWeights
    from tpu_mlir.importers.plan import plan_for
    from tpu_mlir.transforms.fold_casts import FoldCasts
    from tpu_mlir.transforms.passes import run_passes
    from tpu_mlir.transforms.strip_io_casts import StripIoCasts

    checkpoint = open_checkpoint(model)
    plan = plan_for(seq=seq, prefill=prefill or seq, history=history, tile=chip_named(chip).mask_tile)
    found = {piece.net: piece for piece in pieces(checkpoint.config, plan, sample=sample)}
    if net is None:
        click.echo("\n".join(found))
        return
    if net not in found:
        raise BadInput(f"There is no program {net!r}.", f"There are {', '.join(found)}.")
    piece = found[net]
    module = piece.build(LayerWeights(checkpoint, plan).forms(piece.weights))
    if level == "tpu":
        lowering = lowering_for(checkpoint, chip, quant, group_size, symmetric)
        run_passes(module, (lowering, FoldCasts(), StripIoCasts()))
    click.echo(adapter.print_module(module, names=True), nl=False)


@tpu.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--ids", help="Token ids, separated by commas.  [default: eight at random]")
@json_option
@_CHIP
@_QUANT
@_GROUP
@_SYMMETRIC
def check(
    model: Path, ids: str | None, json_to: str | None, chip: str, quant: str, group_size: int, symmetric: bool
) -> None:
    """Compare MODEL before and after lowering, tensor by tensor, on the host.

    The last id is decoded, those before it are prefilled. Ends with 1 when a tensor is wrong.
    """
    from tpu_mlir.importers.auto_mode import lowering_for
    from tpu_mlir.importers.checkpoints.checkpoint import open_checkpoint
    from tpu_mlir.importers.plan import plan_for
    from tpu_mlir.verify.ladder import climb

    checkpoint = open_checkpoint(model)
    tokens = _ids(ids, checkpoint.config.vocab_size)
    lowering = lowering_for(checkpoint, chip, quant, group_size, symmetric)
    plan = plan_for(seq=max(len(tokens), 2), prefill=max(len(tokens) - 1, 1))
    reports = []
    if json_to is None:
        click.echo(
            f"{'program':<18} {'tensors':>7}  {'cosine':>9} {'euclid':>8} {'SQNR dB':>8} {'max ulp':>8}  worst tensor"
        )
    for report in climb(checkpoint, tokens, plan, lowering):
        reports.append(report)
        if json_to is None:
            click.echo(_line(report))
    if json_to is not None:
        write_json({"programs": [report.model_dump(mode="json") for report in reports]}, json_to)
    if any(report.worst.trouble for report in reports):
        raise SystemExit(1)


def _line(report: "NetReport") -> str:
    worst = report.worst
    sqnr = "exact" if worst.sqnr_db is None else f"{worst.sqnr_db:.1f}"
    numbers = f"{worst.cosine:>9.6f} {worst.euclid:>8.4f} {sqnr:>8} {worst.max_ulp:>8}"
    line = f"{report.net:<18} {len(report.tensors):>7}  {numbers}  {worst.name}"
    return f"{line}\n{'':<18} {worst.name}: {report.hint}" if report.hint else line


def _ids(text: str | None, vocabulary: int) -> list[int]:
    if text is None:
        import numpy as np

        return [int(i) for i in np.random.default_rng(0).integers(0, vocabulary, 8)]
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise BadInput(f"--ids is {text!r}.", "Give whole numbers separated by commas.") from error
