"""Pools of KV cache that layers with sliding windows have for themselves, and their share of it.

SGLang gives such layers a pool for a share of the tokens (``swa_full_tokens_ratio``), if the
model's architecture is in its list (``is_hybrid_swa_model`` of 0.5.23; Gemma is switched off
there). TensorRT-LLM has pools where its file names windows (``max_attention_window``, of the layers
in turn, over and over), and divides memory by window times layers (``calculateWindowSizeToShare``);
with ``use_kv_cache_manager_v2`` as a typical step has tokens in them: a prompt that fills a step,
and for the rest of the batch sequences of ``avg_seq_len``, or as long as they may be
(``typical_step`` of its kv_cache_manager_v2.py).
"""

from collections.abc import Mapping

from modelserve.api.spec import EngineType
from modelserve.catalog.architecture import Model
from modelserve.engines import types

# Their memory share is one of the free memory (KvCacheConfig.free_gpu_memory_fraction).
OF_FREE_MEMORY = (EngineType.TENSORRT_LLM, EngineType.TRITON)
# Of the catalogue's models with windows, those that SGLang has a second pool for, and its size.
_SGLANG_HYBRID = "gpt-oss"
_SGLANG_SHARE = 0.8


def counted_layers(launch: types.Launch) -> float:
    """Layers that a token of the first pool takes the memory of, with its share in a second."""
    if launch.engine is EngineType.SGLANG:
        return sglang_layers(launch.model, dict(launch.options))
    windows = _told_windows(launch)
    longest, share = launch.max_model_tokens, second_share(launch)
    return sum(1.0 if window == longest else share * window / min(windows) for window in windows)


def sglang_layers(model: Model, options: Mapping[str, str]) -> float:
    """The same of SGLang: all layers, if there is one pool."""
    if not _has_two_pools(model, options):
        return model.layers
    full = model.full_layers()
    return full + _sglang_share(options) * (model.layers - full)


def second_share(launch: types.Launch) -> float:
    """Tokens of the second pool for each of the first; 0 if there is none."""
    options = dict(launch.options)
    if launch.engine is EngineType.SGLANG:
        return _sglang_share(options) if _has_two_pools(launch.model, options) else 0.0
    window, longest = min(_told_windows(launch)), launch.max_model_tokens
    if window >= longest:
        return 0.0
    if options.get("use-kv-cache-manager-v2", "false").lower() != "true":
        return window / longest
    told = options.get("avg-seq-len", "")
    typical = min(longest, int(told)) if told.isdecimal() else longest
    prompt, others = launch.max_batched_tokens, launch.max_sequences - 1
    return (prompt + others * min(typical, window)) / (prompt + others * typical)


def second_window(launch: types.Launch) -> int | None:
    """The window of the layers with a pool of their own; None if there is one pool."""
    if not second_share(launch):
        return None
    sglang = launch.engine is EngineType.SGLANG
    return launch.model.window_tokens if sglang else min(_told_windows(launch))


def _has_two_pools(model: Model, options: Mapping[str, str]) -> bool:
    """Whether SGLang gives the model's layers with a window a pool of their own."""
    off = options.get("disable-hybrid-swa-memory", "false") != "false"
    return not off and _SGLANG_HYBRID in model.name and model.window_tokens is not None


def _sglang_share(options: Mapping[str, str]) -> float:
    return float(options.get("swa-full-tokens-ratio", _SGLANG_SHARE))


def _told_windows(launch: types.Launch) -> list[int]:
    """Of each layer the tokens that TensorRT-LLM was told to keep: all, if it was told nothing.

    A file that has a window for every layer is not believed: then nothing would hold a sequence.
    """
    longest, layers = launch.max_model_tokens, launch.model.layers
    told = dict(launch.options).get("max-attention-window", "")
    pattern = [min(longest, int(each)) for each in told.replace(",", " ").split()]
    if launch.engine not in OF_FREE_MEMORY or not pattern or max(pattern) < longest:
        return [longest] * layers
    return [max(1, pattern[at % len(pattern)]) for at in range(layers)]
