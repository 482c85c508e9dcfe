"""The architecture of a decoder-only language model, in one form for all families and containers."""

from typing import Literal, Self

from pydantic import Field, model_validator

from core.records import Record

Family = Literal["llama", "qwen2", "qwen3", "minicpm"]
RopeKind = Literal["default", "linear", "dynamic", "llama3", "yarn", "longrope"]


class Rope(Record):
    """Rotary position embedding: base and scaling. Fields that a kind does not use keep their defaults."""

    theta: float = Field(gt=0)
    kind: RopeKind = "default"
    factor: float = 1.0
    original_max_positions: int = 0
    """Positions of the unscaled model (dynamic, llama3, yarn, longrope)."""
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    attention_factor: float = 1.0
    """Multiplies cos and sin (yarn, longrope)."""
    short_factors: tuple[float, ...] = ()
    long_factors: tuple[float, ...] = ()


class ModelConfig(Record):
    """What the graph of a model depends on, besides its weights."""

    family: Family
    hidden_size: int = Field(gt=0)
    intermediate_size: int = Field(gt=0)
    layers: int = Field(gt=0)
    heads: int = Field(gt=0)
    kv_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    vocab_size: int = Field(gt=0)
    max_positions: int = Field(gt=0)
    norm_eps: float = Field(gt=0)
    rope: Rope
    tied_embeddings: bool
    """The head uses the embedding's weight; there is no lm_head tensor of its own."""
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    """RMSNorm over each head of q and k before RoPE."""
    embedding_scale: float = 1.0
    """Multiplies embeddings (MiniCPM)."""
    residual_scale: float = 1.0
    """Multiplies what attention and MLP add to the residual stream (MiniCPM)."""
    logit_divisor: float = 1.0
    """Divides the hidden state before the head (MiniCPM)."""
    weight_type: str = "bfloat16"
    """The float type that the checkpoint says it was saved in."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.heads % self.kv_heads:
            raise ValueError(f"{self.heads} attention heads do not divide among {self.kv_heads} key/value heads")
        if self.head_dim % 2:
            raise ValueError(f"head_dim {self.head_dim} is odd, but RoPE turns pairs")
        for name, factors in (("short", self.rope.short_factors), ("long", self.rope.long_factors)):
            if self.rope.kind == "longrope" and len(factors) != self.head_dim // 2:
                raise ValueError(f"longrope has {len(factors)} {name} factors, expected {self.head_dim // 2}")
        return self

    @property
    def q_size(self) -> int:
        """Outputs of the query projection."""
        return self.heads * self.head_dim

    @property
    def kv_size(self) -> int:
        """Outputs of the key projection, and of the value projection."""
        return self.kv_heads * self.head_dim


class GenerationConfig(Record):
    """How the checkpoint's authors sample; the runtime's defaults."""

    eos_token_ids: tuple[int, ...] = ()
    bos_token_id: int | None = None
    pad_token_id: int | None = None
    do_sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    """0: all tokens."""
    top_p: float = 1.0
    repetition_penalty: float = 1.0
