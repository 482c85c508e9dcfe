"""One decoder layer as TopOps: the graph that the Llama, Qwen2, Qwen3 and MiniCPM families share."""

from dataclasses import dataclass

from tpu_mlir.dialects.adapter import Value
from tpu_mlir.dialects.build import FunctionWriter
from tpu_mlir.importers.checkpoints.model_config import ModelConfig
from tpu_mlir.importers.checkpoints.roles import FINAL_NORM, Role, has_bias, linear_shapes, module_name
from tpu_mlir.importers.linear import Forms, LinearWriter

COS, SIN, TILE = "rotary_cos.weight", "rotary_sin.weight", "attention_mask.weight"
"""Roles of the constants that no checkpoint holds: the RoPE tables [seq, 1, head_dim] and the causal triangle."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerInputs:
    """What a layer's program starts from; `history` are the key/value rows before the new ones."""

    states: Value
    positions: Value
    mask: Value | None = None
    tile: Value | None = None
    history: tuple[Value, Value] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerGraph:
    """Writes one layer of a model into a function of `rows` new tokens."""

    writer: FunctionWriter
    config: ModelConfig
    layer: int
    seq: int
    rows: int
    forms: Forms

    def write(self, given: LayerInputs) -> tuple[Value, Value, Value]:
        """Write the layer, the last one with the model's final norm; return states and the new key/value rows."""
        normed = self._norm(given.states, "input_layernorm", self.config.hidden_size)
        attended, k, v = self._attention(normed, given)
        states = self._add(given.states, attended, "attention_residual")
        states = self._add(states, self._mlp(states), "mlp_residual")
        if self.layer == self.config.layers - 1:
            gamma = self.writer.weight(f"{FINAL_NORM}.weight", (self.config.hidden_size,))
            states = self.writer.op("top.rms_norm", states, gamma, name=FINAL_NORM, eps=self.config.norm_eps)
        return states, k, v

    def _attention(self, x: Value, given: LayerInputs) -> tuple[Value, Value, Value]:
        config, write = self.config, self.writer
        q, k, v = self._linear(x, "q_proj"), self._linear(x, "k_proj"), self._linear(x, "v_proj")
        q = self._heads(q, "q", config.heads)
        k = self._heads(k, "k", config.kv_heads)
        v = self._heads(v, "v", config.kv_heads)
        if config.qk_norm:
            q = self._norm(q, "q_norm", config.head_dim)
            k = self._norm(k, "k_norm", config.head_dim)
        table = (self.seq, 1, config.head_dim)
        cos, sin = (
            write.op("top.gather", write.weight(role, table), given.positions, name=self._named(part), axis=0)
            for role, part in ((COS, "cos"), (SIN, "sin"))
        )
        q = write.op("top.rope", q, sin, cos, name=self._named("q_rope"))
        k = write.op("top.rope", k, sin, cos, name=self._named("k_rope"))
        keys, values = k, v
        if given.history is not None:
            keys = write.op("top.concat", (given.history[0], k), name=self._named("keys"), axis=1)
            values = write.op("top.concat", (given.history[1], v), name=self._named("values"), axis=1)
        attended = write.op(
            "top.attention",
            q,
            keys,
            values,
            given.mask,
            given.tile,
            name=self._named("attention"),
            scale=config.head_dim**-0.5,
        )
        return self._linear(attended, "o_proj"), k, v

    def _mlp(self, states: Value) -> Value:
        x = self._norm(states, "post_attention_layernorm", self.config.hidden_size)
        gate = self.writer.op("top.silu", self._linear(x, "gate_proj"), name=self._named("gate"))
        product = self.writer.op("top.mul", gate, self._linear(x, "up_proj"), name=self._named("gated"))
        return self._linear(product, "down_proj")

    def _add(self, states: Value, update: Value, name: str) -> Value:
        if self.config.residual_scale != 1.0:
            scaled = self._named(f"{name}_scaled")
            update = self.writer.op("top.mul_const", update, name=scaled, value=self.config.residual_scale)
        return self.writer.op("top.add", states, update, name=self._named(name))

    def _norm(self, x: Value, role: Role, size: int) -> Value:
        module = module_name(self.layer, role)
        gamma = self.writer.weight(f"{module}.weight", (size,))
        return self.writer.op("top.rms_norm", x, gamma, name=module, eps=self.config.norm_eps)

    def _heads(self, x: Value, name: str, heads: int) -> Value:
        shape = (1, self.rows, heads, self.config.head_dim)
        return self.writer.op("top.reshape", x, name=self._named(f"{name}_heads"), shape=shape)

    def _linear(self, x: Value, role: Role) -> Value:
        module = module_name(self.layer, role)
        bias = has_bias(self.config, role)
        return LinearWriter(self.writer, self.forms)(x, module, linear_shapes(self.config)[module], bias=bias)

    def _named(self, part: str) -> str:
        return f"model.layers.{self.layer}.{part}"
