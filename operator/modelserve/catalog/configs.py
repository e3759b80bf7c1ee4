"""A model from its ``config.json``: parameters, weight bytes and KV bytes computed from the shape.

Formulas: data/models.yaml, ``formulas``. Read are the keys of Hugging Face decoder models: dense,
mixture of experts, grouped heads, latent (MLA) caches, sliding windows, quantised checkpoints.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelserve import errors
from modelserve.catalog import architecture
from modelserve.catalog.architecture import LINEAR_BYTES

_EXPERT_KEYS = ("num_local_experts", "num_experts", "n_routed_experts")
_MOST = 10**9


def from_config(config: Mapping[str, Any], name: str) -> architecture.Model:
    """The model of a ``config.json``. Raises InputError, naming what is missing or cannot be."""
    inner = config.get("text_config")
    text = {**config, **inner} if isinstance(inner, Mapping) else config
    shape = _shape(text, name)
    dtype, bare = _formats(text)
    total = shape.linear + shape.rest
    rest_bytes = shape.rest * 2
    published = round(shape.linear * LINEAR_BYTES[dtype]) + rest_bytes
    moe_parameters = 0 if shape.experts is None else shape.expert_parameters
    idle_share = 0.0 if shape.experts is None else 1 - shape.experts.per_token / shape.experts.count
    embedding = 0 if shape.tied else shape.vocab * shape.hidden
    read = published - embedding * 2 - moe_parameters * LINEAR_BYTES[dtype] * idle_share
    return architecture.Model(
        name=name,
        short_name=name.rsplit("/", 1)[-1].lower(),
        family=str(text.get("model_type") or "custom"),
        layers=shape.layers,
        hidden=shape.hidden,
        intermediate=shape.intermediate,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        vocab=shape.vocab,
        tied_embeddings=shape.tied,
        max_context_tokens=_count(text, name, "max_position_embeddings", default=131_072),
        dtype=dtype,
        parameters=total,
        active_parameters=total - round(moe_parameters * idle_share),
        weight_bytes_none=published,
        weight_bytes_fp8=round(shape.linear * LINEAR_BYTES["fp8"]) + rest_bytes
        if bare
        else published,
        weight_bytes_int4=round(shape.linear * LINEAR_BYTES["int4"]) + rest_bytes
        if bare
        else published,
        read_bytes_batch_1=round(read),
        kv_bytes_per_token=shape.kv_bytes,
        kv_bytes_per_token_beyond_window=shape.kv_bytes_beyond_window,
        window_tokens=shape.window,
        latent_kv=shape.latent,
        experts=shape.experts,
        in_catalogue=False,
    )


@dataclass(frozen=True, slots=True)
class _Shape:
    """Sizes and parameter counts; ``linear`` can be quantised, ``rest`` stays at 16 bit."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied: bool
    latent: bool
    linear: int
    rest: int
    expert_parameters: int
    experts: architecture.Experts | None
    kv_bytes: int
    kv_bytes_beyond_window: int
    window: int | None


def _shape(text: Mapping[str, Any], name: str) -> _Shape:
    layers, hidden = _count(text, name, "num_hidden_layers"), _count(text, name, "hidden_size")
    heads = _count(text, name, "num_attention_heads")
    kv_heads = _count(text, name, "num_key_value_heads", default=heads)
    head_dim = _count(text, name, "head_dim", default=max(1, hidden // heads))
    vocab, tied = _count(text, name, "vocab_size"), bool(text.get("tie_word_embeddings", False))
    experts = _experts(text, name)
    intermediate = _count(
        text, name, "intermediate_size", default=experts.intermediate if experts else 4 * hidden
    )
    if kv_heads > heads:
        raise _refused(name, "num_key_value_heads", kv_heads, f"must be at most {heads}, the heads")
    latent = text.get("kv_lora_rank") is not None
    attention = (
        _latent_attention(text, name, hidden, heads)
        if latent
        else 2 * hidden * heads * head_dim + 2 * hidden * kv_heads * head_dim
    )
    dense_layers, expert_parameters, shared = layers, 0, 0
    if experts is not None:
        dense_layers = min(layers, experts.dense_first_layers)
        each = 3 * hidden * experts.intermediate
        expert_parameters = each * experts.count * (layers - dense_layers)
        shared = each * experts.shared * (layers - dense_layers)
    routers = 0 if experts is None else hidden * experts.count * (layers - dense_layers)
    mlp = 3 * hidden * intermediate * dense_layers
    kv_layer = (
        _count(text, name, "kv_lora_rank") + _count(text, name, "qk_rope_head_dim", default=0)
        if latent
        else 2 * kv_heads * head_dim
    ) * 2
    window, sliding_layers = _window(text, name, layers)
    return _Shape(
        layers=layers,
        hidden=hidden,
        intermediate=intermediate,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocab=vocab,
        tied=tied,
        latent=latent,
        linear=layers * attention + mlp + expert_parameters + shared,
        rest=vocab * hidden * (1 if tied else 2) + hidden + layers * 2 * hidden + routers,
        expert_parameters=expert_parameters,
        experts=experts,
        kv_bytes=layers * kv_layer,
        kv_bytes_beyond_window=(layers - sliding_layers) * kv_layer,
        window=window,
    )


def _latent_attention(text: Mapping[str, Any], name: str, hidden: int, heads: int) -> int:
    """Parameters of one MLA layer: queries (perhaps compressed), latent, its expansion, output."""
    latent, rope = _count(text, name, "kv_lora_rank"), _count(text, name, "qk_rope_head_dim")
    plain, value = _count(text, name, "qk_nope_head_dim"), _count(text, name, "v_head_dim")
    squeezed = _count(text, name, "q_lora_rank", default=0)
    query = heads * (plain + rope)
    queries = hidden * squeezed + squeezed * query if squeezed else hidden * query
    return (
        queries
        + hidden * (latent + rope)
        + latent * heads * (plain + value)
        + heads * value * hidden
    )


def _experts(text: Mapping[str, Any], name: str) -> architecture.Experts | None:
    key = next((key for key in _EXPERT_KEYS if text.get(key)), None)
    if key is None:
        return None
    used = "num_experts_per_tok" if text.get("num_experts_per_tok") else "experts_per_token"
    width = "moe_intermediate_size" if text.get("moe_intermediate_size") else "intermediate_size"
    count, per_token = _count(text, name, key), _count(text, name, used)
    if per_token > count:
        raise _refused(name, used, per_token, f"must be at most {count}, the experts")
    return architecture.Experts(
        count=count,
        per_token=per_token,
        intermediate=_count(text, name, width),
        shared=_count(text, name, "n_shared_experts", default=0),
        dense_first_layers=_count(text, name, "first_k_dense_replace", default=0),
    )


def _window(text: Mapping[str, Any], name: str, layers: int) -> tuple[int | None, int]:
    """The sliding window in tokens, and how many layers have it."""
    if not text.get("sliding_window") or text.get("use_sliding_window") is False:
        return None, 0
    window = _count(text, name, "sliding_window")
    kinds = text.get("layer_types")
    if isinstance(kinds, list) and kinds:
        return window, sum(kind == "sliding_attention" for kind in kinds[:layers])
    if text.get("sliding_window_pattern"):
        return window, layers - layers // _count(text, name, "sliding_window_pattern")
    return window, layers


def _formats(text: Mapping[str, Any]) -> tuple[str, bool]:
    """Number format of the linear layers as published, and whether it is an unquantised one."""
    quantised = text.get("quantization_config")
    if isinstance(quantised, Mapping):
        method = str(quantised.get("quant_method") or "").lower()
        bits = quantised.get("bits", quantised.get("w_bit"))
        if method == "mxfp4":
            return "mxfp4", False
        if method in ("awq", "gptq") or bits == 4 or quantised.get("load_in_4bit"):
            return "int4", False
        return "fp8", False
    word = str(text.get("torch_dtype") or text.get("dtype") or "bfloat16")
    return ("fp16" if word.removeprefix("torch.") == "float16" else "bf16"), True


def _count(text: Mapping[str, Any], name: str, key: str, default: int | None = None) -> int:
    """A whole number; at least 1 unless it may be left out as 0."""
    value = text.get(key)
    if value is None and default is not None:
        return default
    if value is None:
        raise errors.InputError(
            f"{name}: config.json lacks {key}; give the config.json of a decoder model"
        )
    least = 1 if default is None or default > 0 else 0
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
        raise _refused(name, key, value, f"must be a whole number from {least} on")
    return value


def _refused(name: str, key: str, value: object, rule: str) -> errors.InputError:
    return errors.InputError(f"{name}: {key} in config.json is {value!r}; it {rule}")
