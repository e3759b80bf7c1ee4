"""What a model is to an engine: bytes of weights, bytes read per step, KV cache per token."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelserve.api.spec import Quantization

# Bytes per parameter of a linear layer (data/models.yaml, formulas.quantised_bytes).
LINEAR_BYTES: Mapping[str, float] = {
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int4": 0.53125,
    "mxfp4": 0.53125,
}


@dataclass(frozen=True, slots=True)
class Experts:
    """Mixture of experts: a token uses ``per_token`` of a layer's ``count`` feed-forward parts."""

    count: int
    per_token: int
    intermediate: int
    shared: int
    dense_first_layers: int


@dataclass(frozen=True, slots=True)
class Model:
    """What a model weighs and what a step must read. Bytes are bytes, parameters are numbers."""

    name: str
    short_name: str
    family: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied_embeddings: bool
    max_context_tokens: int
    dtype: str
    parameters: int
    active_parameters: int
    weight_bytes_none: int
    weight_bytes_fp8: int
    weight_bytes_int4: int
    read_bytes_batch_1: int
    kv_bytes_per_token: int
    kv_bytes_per_token_beyond_window: int
    window_tokens: int | None = None
    latent_kv: bool = False
    experts: Experts | None = None
    in_catalogue: bool = True

    def weight_bytes(self, quantization: str = Quantization.NONE) -> int:
        """Bytes of all weight files at ``none`` (as published), ``fp8`` or ``int4``."""
        match Quantization(quantization):
            case Quantization.FP8:
                return self.weight_bytes_fp8
            case Quantization.INT4:
                return self.weight_bytes_int4
            case _:
                return self.weight_bytes_none

    def format(self, quantization: str = Quantization.NONE) -> str:
        """Number format of the linear layers: bf16, fp16, fp8, int4 or mxfp4."""
        if quantization == Quantization.NONE or self.dtype == "mxfp4":
            return self.dtype
        return str(Quantization(quantization))

    def weight_bits(self, quantization: str = Quantization.NONE) -> int:
        """16, 8 or 4."""
        return {"bf16": 16, "fp16": 16, "fp8": 8}.get(self.format(quantization), 4)

    def read_bytes_per_step(self, quantization: str, batch: int) -> float:
        """Weight bytes one decode step reads from GPU memory, over all ranks.

        Everything but the input embedding (a look-up); of experts the share that ``batch`` tokens
        touch, ``1 - (1 - k/n)^batch`` with uniform routing.
        """
        whole, idle, share = self.read_terms(quantization)
        read: float = whole - idle * share ** max(1, batch)
        return read

    def read_terms(self, quantization: str) -> tuple[float, float, float]:
        """What a step of t tokens reads: the first less the second times the third to the t."""
        unread = (
            self.weight_bytes_none - self._expert_bytes(Quantization.NONE) * self._idle_share
        ) - self.read_bytes_batch_1
        whole = self.weight_bytes(quantization) - max(0.0, unread)
        return max(0.0, whole), self._expert_bytes(quantization), self._idle_share

    @property
    def _idle_share(self) -> float:
        """Share of the experts that one token is not routed to."""
        return 0.0 if self.experts is None else 1 - self.experts.per_token / self.experts.count

    def _expert_bytes(self, quantization: str) -> float:
        """Bytes of all experts of all layers."""
        if self.experts is None:
            return 0.0
        parameters = self.expert_parameters_per_token() * self.experts.count
        return parameters / self.experts.per_token * LINEAR_BYTES[self.format(quantization)]

    def expert_layers(self) -> int:
        """Layers that have experts."""
        return 0 if self.experts is None else max(0, self.layers - self.experts.dense_first_layers)

    def expert_parameters_per_token(self) -> int:
        """Parameters of the experts that one token is routed to, over all layers."""
        if self.experts is None:
            return 0
        each = 3 * self.hidden * self.experts.intermediate
        return each * self.experts.per_token * self.expert_layers()

    def compute_parameters(self) -> int:
        """Parameters multiplied per token: the active ones without the input embedding."""
        return self.active_parameters - (0 if self.tied_embeddings else self.vocab * self.hidden)

    def kv_bytes(self, context_tokens: int, dtype_bytes: int = 2) -> int:
        """KV cache bytes one sequence of that length holds, over all ranks."""
        full = context_tokens if self.window_tokens is None else self.window_tokens
        inside, beyond = min(context_tokens, full), max(0, context_tokens - full)
        total = inside * self.kv_bytes_per_token + beyond * self.kv_bytes_per_token_beyond_window
        return total * dtype_bytes // 2

    def full_layers(self) -> int:
        """Layers without a sliding window; all layers keep as much of a token."""
        if self.window_tokens is None:
            return self.layers
        return self.layers * self.kv_bytes_per_token_beyond_window // self.kv_bytes_per_token

    def kv_shards(self, tensor_parallel: int) -> int:
        """GPUs that one sequence's KV is divided over; heads are copied beyond ``kv_heads``."""
        return 1 if self.latent_kv else min(tensor_parallel, self.kv_heads)

    def to_shape(self) -> dict[str, Any]:
        """The mapping of ``spec.model.custom``: ``models.from_shape`` reads it back, if dense."""
        return {
            "parameters": self.parameters,
            "layers": self.layers,
            "hidden": self.hidden,
            "intermediate": self.intermediate,
            "heads": self.heads,
            "kvHeads": self.kv_heads,
            "headDim": self.head_dim,
            "vocab": self.vocab,
            "tiedEmbeddings": self.tied_embeddings,
            "maxContext": self.max_context_tokens,
        }
