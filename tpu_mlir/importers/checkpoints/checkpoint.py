"""A checkpoint, opened: configuration, tokenizer, and weights that are read one layer at a time."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from core.errors import BadInput
from tpu_mlir.importers.checkpoints.gguf_config import parse_gguf_config, parse_gguf_generation
from tpu_mlir.importers.checkpoints.gguf_file import open_gguf
from tpu_mlir.importers.checkpoints.gguf_tokenizer import GgufTokenizer, read_gguf_tokenizer
from tpu_mlir.importers.checkpoints.hf_config import parse_generation_config, parse_model_config
from tpu_mlir.importers.checkpoints.json_values import read_json
from tpu_mlir.importers.checkpoints.model_config import GenerationConfig, ModelConfig
from tpu_mlir.importers.checkpoints.roles import EMBEDDING, HEAD, linear_shapes, vector_shapes
from tpu_mlir.importers.checkpoints.safetensors_files import open_safetensors
from tpu_mlir.importers.checkpoints.tokenizer_files import TokenizerFiles, find_tokenizer_files
from tpu_mlir.importers.checkpoints.weights import Array, Weights, require
from tpu_mlir.quantize.declared import read_declared
from tpu_mlir.quantize.decode import decode_layer
from tpu_mlir.quantize.detect import detect
from tpu_mlir.quantize.findings import Finding
from tpu_mlir.quantize.formats import QuantisedFormat
from tpu_mlir.quantize.group_quantised import GroupQuantised


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """A checkpoint whose files, tensor names, shapes and types were checked. No weight has been read yet."""

    path: Path
    container: Literal["safetensors", "gguf"]
    config: ModelConfig
    generation: GenerationConfig
    tokenizer: TokenizerFiles | GgufTokenizer
    weights: Weights
    quantised: QuantisedFormat | None
    """How quantised linear layers are stored; None when all weights are floats."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the user should be told: where the checkpoint contradicts itself."""
        return self.quantised.findings if self.quantised is not None else ()

    @property
    def head(self) -> str:
        """Name of the module whose weight the head uses: the embedding when tied."""
        return EMBEDDING if self.config.tied_embeddings else HEAD

    def linear(self, module: str) -> Array | GroupQuantised:
        """Read a linear module's weight [outputs, inputs]: floats, or the canonical quantised form.

        Raises:
            BadInput: the weight is missing or damaged; names file and module.
        """
        if self.quantised is None or module not in self.quantised.layers:
            return self.weights[f"{module}.weight"]
        try:
            return decode_layer(self.weights, self.quantised.layers[module], self.quantised.zero_rule)
        except BadInput as error:
            raise BadInput(f"{self.path}: {error.what}", error.fix) from error

    def bias(self, module: str) -> Array | None:
        """Read a linear module's bias, None when it has none."""
        name = f"{module}.bias"
        return self.weights.get(name)


def open_checkpoint(path: Path | str) -> Checkpoint:
    """Open a Hugging Face directory or a GGUF file and check all that can be checked without reading weights.

    Raises:
        BadInput: anything that would stop a compilation later: unknown family, MoE, LoRA, FP8, missing or truncated
            files, missing tensors, wrong shapes or types; the message names file and tensor, what was found and
            expected.
    """
    path = Path(path)
    if path.is_dir():
        return _open_directory(path)
    if path.is_file():
        return _open_gguf(path)
    raise BadInput(f"{path} does not exist.", "Give a Hugging Face checkpoint directory or a .gguf file.")


def _open_directory(path: Path) -> Checkpoint:
    if (path / "adapter_config.json").is_file():
        raise BadInput(
            f"{path} is a LoRA adapter (adapter_config.json), not a model.", "Merge it into its base model first."
        )
    config_file = path / "config.json"
    if not config_file.is_file() and len(ggufs := sorted(path.glob("*.gguf"))) == 1:
        return _open_gguf(ggufs[0])
    raw = read_json(config_file)
    config = parse_model_config(raw, str(config_file))
    claims = raw.get("quantization_config")
    declared = read_declared(claims) if isinstance(claims, dict) else None
    generation_file = path / "generation_config.json"
    generation = {**raw, **(read_json(generation_file) if generation_file.is_file() else {})}
    weights = open_safetensors(path)
    quantised = detect(weights, declared)
    checkpoint = Checkpoint(
        path=path,
        container="safetensors",
        config=config,
        generation=parse_generation_config(generation, str(generation_file)),
        tokenizer=find_tokenizer_files(path),
        weights=weights,
        quantised=quantised,
    )
    _check_tensors(checkpoint)
    return checkpoint


def _open_gguf(path: Path) -> Checkpoint:
    weights, metadata = open_gguf(path)
    checkpoint = Checkpoint(
        path=path,
        container="gguf",
        config=parse_gguf_config(metadata, weights, str(path)),
        generation=parse_gguf_generation(metadata, str(path)),
        tokenizer=read_gguf_tokenizer(metadata, str(path)),
        weights=weights,
        quantised=None,
    )
    _check_tensors(checkpoint)
    return checkpoint


def _check_tensors(checkpoint: Checkpoint) -> None:
    """Check that all tensors of the configuration are there with their shapes, and no biases that it does not know."""
    config, weights = checkpoint.config, checkpoint.weights
    table = (config.vocab_size, config.hidden_size)
    require(weights, f"{EMBEDDING}.weight", table)
    linears = dict(linear_shapes(config))
    if not config.tied_embeddings:
        linears[HEAD] = table
    layers = checkpoint.quantised.layers if checkpoint.quantised is not None else {}
    for module, shape in linears.items():
        if module not in layers:
            require(weights, f"{module}.weight", shape)
        elif (layers[module].outputs, layers[module].inputs) != shape:
            found = [layers[module].outputs, layers[module].inputs]
            raise BadInput(
                f"{checkpoint.path}: {module} is quantised for {found} outputs and inputs, expected {list(shape)}.",
                "The weights do not belong to this configuration.",
            )
    expected = set()
    for name, vector in vector_shapes(config):
        require(weights, name, vector)
        expected.add(name)
    for name in weights:
        module, _, part = name.rpartition(".")
        if part == "bias" and module in linears and name not in expected and weights[name].any():
            raise BadInput(
                f"{weights.info(name).file.name}: {name} is a bias, but the configuration says there is none.",
                "Leaving it out would change the results: correct config.json.",
            )
