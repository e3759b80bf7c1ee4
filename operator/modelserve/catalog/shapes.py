"""A model from a few numbers, where the catalogue has none: ``spec.model.custom``.

Formulas: data/models.yaml, ``formulas``. What is left out is derived where it can be.
"""

from collections.abc import Mapping
from typing import Any

from modelserve import errors
from modelserve.catalog import architecture

_COUNTS = (
    "parameters",
    "layers",
    "hidden",
    "intermediate",
    "heads",
    "kvHeads",
    "headDim",
    "vocab",
    "maxContext",
)
# Common to the models of the catalogue, and used only where the shape says nothing.
DEFAULT_HEAD_DIM = 128
DEFAULT_VOCAB = 128_000
DEFAULT_MAX_CONTEXT_TOKENS = 131_072


def from_shape(name: str, shape: Mapping[str, Any]) -> architecture.Model:
    """A dense 16-bit model of that shape. Raises InputError if too little is known.

    ``layers`` and ``hidden`` are needed. Left out, ``headDim`` is 128 (or hidden / heads),
    ``heads`` hidden / headDim, ``kvHeads`` heads, ``vocab`` 128 000, ``intermediate`` what
    ``parameters`` leaves, else 3.5 × hidden, and ``parameters`` the sum of the parts.
    """
    given = {key: _count(name, key, shape.get(key)) for key in _COUNTS}
    layers, hidden = given["layers"], given["hidden"]
    if layers is None or hidden is None:
        missing = " and ".join(key for key in ("layers", "hidden") if given[key] is None)
        raise errors.InputError(
            f"model {name!r} is not in the catalogue and model.custom lacks {missing}: "
            "give at least layers and hidden, as in the model's config.json"
        )
    heads, kv_heads, head_dim = _heads(name, given, hidden)
    vocab = given["vocab"] or DEFAULT_VOCAB
    tied = bool(shape.get("tiedEmbeddings") or False)
    attention = 2 * hidden * heads * head_dim + 2 * hidden * kv_heads * head_dim
    fixed = vocab * hidden * (1 if tied else 2) + hidden + layers * (attention + 2 * hidden)
    intermediate = given["intermediate"]
    if intermediate is None:
        room = (given["parameters"] or 0) - fixed
        intermediate = max(1, round(room / (3 * hidden * layers))) if room > 0 else hidden * 7 // 2
    parameters = given["parameters"] or fixed + layers * 3 * hidden * intermediate
    linear = min(parameters, layers * (attention + 3 * hidden * intermediate))
    rest_bytes = (parameters - linear) * 2
    embedding_bytes = 0 if tied else vocab * hidden * 2
    kv = 2 * layers * kv_heads * head_dim * 2
    return architecture.Model(
        name=name,
        short_name=name.rsplit("/", 1)[-1].lower(),
        family="custom",
        layers=layers,
        hidden=hidden,
        intermediate=intermediate,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocab=vocab,
        tied_embeddings=tied,
        max_context_tokens=given["maxContext"] or DEFAULT_MAX_CONTEXT_TOKENS,
        dtype="bf16",
        parameters=parameters,
        active_parameters=parameters,
        weight_bytes_none=parameters * 2,
        weight_bytes_fp8=linear + rest_bytes,
        weight_bytes_int4=round(linear * architecture.LINEAR_BYTES["int4"]) + rest_bytes,
        read_bytes_batch_1=max(linear * 2, parameters * 2 - embedding_bytes),
        kv_bytes_per_token=kv,
        kv_bytes_per_token_beyond_window=kv,
        in_catalogue=False,
    )


def _heads(name: str, given: Mapping[str, int | None], hidden: int) -> tuple[int, int, int]:
    heads, head_dim = given["heads"], given["headDim"]
    if head_dim is None:
        head_dim = max(1, hidden // heads) if heads else min(DEFAULT_HEAD_DIM, hidden)
    heads = heads or max(1, hidden // head_dim)
    kv_heads = given["kvHeads"] or heads
    if kv_heads > heads:
        raise errors.InputError(
            f"model {name!r}: model.custom.kvHeads is {kv_heads}, more than its {heads} heads; "
            "kvHeads must be at most heads"
        )
    return heads, kv_heads, head_dim


def _count(name: str, key: str, value: object) -> int | None:
    """A whole number of at least 1, or None if left out."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise errors.InputError(
            f"model {name!r}: model.custom.{key} is {value!r}; it must be a whole number"
        )
    if not 1 <= value <= 10**15:
        raise errors.InputError(
            f"model {name!r}: model.custom.{key} is {value!r}; it must be at least 1"
        )
    return int(value)
