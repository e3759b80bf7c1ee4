"""How many tokens of KV cache a replica has room for, and what is left of GPU memory for it.

The rule is read from engines' start-up logs (``catalog/data/models.yaml``, kv_capacity_seen): share
of the visible memory, less weights and the peak of the profile run; whole blocks of 16 tokens.
TensorRT-LLM takes its share of what weights and buffers leave instead.

Layers with sliding windows share vLLM's blocks with the others (its hybrid KV cache manager,
``vllm/v1/core/kv_cache_planning.py`` of 0.33): see ``Tables``. SGLang and TensorRT-LLM may give
them a pool of their own: see ``pools``. TGI keeps all, and so did vLLM before.
"""

import bisect
import dataclasses
from dataclasses import dataclass

from modelserve.api.spec import EngineType, Quantization
from modelserve.catalog import constants, gpus, images
from modelserve.catalog.architecture import Model
from modelserve.engines import generations, pools, types

# If one kind has less than so many times the layers of the other, the other's are padded to it.
_PADDED_BELOW = 1.5
# Two steps of vLLM's own size on large GPUs.
DEFAULT_IN_FLIGHT_TOKENS = 2 * 8192


@dataclass(frozen=True, slots=True)
class Tables:
    """How the layers of a model share the blocks of an engine's KV cache.

    Layers of one kind are in groups of ``layers``, the last one padded. A sequence has a table of
    blocks for each group, with the group's sliding window in ``windows``, or None if it has none. A
    block holds its tokens for the layers of one group. ``in_flight_tokens`` are computed at most
    before any is out of a window.
    """

    layers: int
    windows: tuple[int | None, ...] = (None,)
    in_flight_tokens: int = 0

    def blocks(self, tokens: int, longest_tokens: int, block_tokens: int) -> int:
        """Most blocks of a sequence of so many tokens where none is longer than ``longest``."""
        whole = -(-tokens // block_tokens)
        return sum(
            whole
            if window is None
            else min(
                whole, window_blocks(window, self.in_flight_tokens, longest_tokens, block_tokens)
            )
            for window in self.windows
        )


def window_blocks(
    window_tokens: int, in_flight_tokens: int, longest_tokens: int, block_tokens: int
) -> int:
    """Most blocks of one sequence in a table with that window, which may begin inside a block."""
    tokens = min(window_tokens - 1 + in_flight_tokens, longest_tokens)
    return -(-tokens // block_tokens) + 1


def tables(launch: types.Launch) -> Tables:
    """How the layers share blocks in an engine as it is started."""
    model, options = launch.model, dict(launch.options)
    off = options.get("disable-hybrid-kv-cache-manager", "false") != "false"
    tag = images.split(launch.image)[1]
    if off or not generations.shares_blocks(launch.engine, tag):
        return Tables(model.layers)
    steps = 2 if generations.lags(launch.engine, tag, options) else 1
    return tables_of(model, steps * launch.max_batched_tokens)


def tables_of(model: Model, in_flight_tokens: int) -> Tables:
    """Groups as vLLM's hybrid manager makes them; the windowed layers come first in all models."""
    full = model.full_layers()
    windowed = model.layers - full
    if not windowed:
        return Tables(model.layers)
    if not full:
        return Tables(model.layers, (model.window_tokens,), in_flight_tokens)
    fewer, more = sorted((full, windowed))
    each = more if more < fewer * _PADDED_BELOW else fewer
    groups = (model.window_tokens,) * -(-windowed // each) + (None,) * -(-full // each)
    return Tables(each, groups, in_flight_tokens)


def usable_bytes(gpu: gpus.Gpu, gpu_memory_utilization: float = 0.9) -> int:
    """Bytes of one GPU for weights and KV cache together."""
    reserve = constants.load().activation_reserve_bytes
    return max(0, round(_visible_bytes(gpu) * gpu_memory_utilization) - reserve)


def room_bytes(
    model: Model,
    gpu: gpus.Gpu,
    tensor_parallel: int,
    quantization: str = Quantization.NONE,
    gpu_memory_utilization: float = 0.9,
    engine: EngineType = EngineType.VLLM,
) -> int:
    """Bytes of one GPU left for KV cache; negative if the weights do not fit."""
    weights = round(model.weight_bytes(quantization) / tensor_parallel)
    if engine in pools.OF_FREE_MEMORY:
        reserve = constants.load().activation_reserve_bytes
        return round((_visible_bytes(gpu) - reserve - weights) * gpu_memory_utilization)
    return usable_bytes(gpu, gpu_memory_utilization) - weights


def holds_weights(launch: types.Launch, gpu: gpus.Gpu) -> bool:
    """Whether the memory of each GPU is as large as its part of the weights."""
    weights = launch.model.weight_bytes(launch.quantization) / launch.tensor_parallel
    return weights < _visible_bytes(gpu)


def capacity_tokens(
    model: Model,
    gpu: gpus.Gpu,
    tensor_parallel: int,
    quantization: str = Quantization.NONE,
    gpu_memory_utilization: float = 0.9,
    engine: EngineType = EngineType.VLLM,
    kv_dtype_bytes: int = 2,
    context_tokens: int = 1,
) -> int:
    """Tokens the KV cache of a replica holds, over all its GPUs; 0 if there is no room.

    ``kv_dtype_bytes`` is 1 for an fp8 cache. In sequences of ``context_tokens``, layers with a
    sliding window keep what is in it; the shortest ones count every layer in full, which is on the
    safe side. Heads are divided over the GPUs as far as they go; a latent cache is on each.
    """
    room = room_bytes(
        model, gpu, tensor_parallel, quantization, gpu_memory_utilization, engine
    ) * model.kv_shards(tensor_parallel)
    context = max(1, context_tokens)
    held = room * context / model.kv_bytes(context, kv_dtype_bytes)
    return _whole_blocks(held)


def capacity_in_longest(
    model: Model,
    gpu: gpus.Gpu,
    tensor_parallel: int,
    quantization: str,
    gpu_memory_utilization: float,
    engine: EngineType,
    kv_dtype_bytes: int,
    longest_tokens: int,
) -> int:
    """As ``capacity_tokens``, in sequences as long as an engine of the newest version takes."""
    memory = gpu_memory_utilization, engine
    shared = tables_of(model, DEFAULT_IN_FLIGHT_TOKENS)
    block = constants.load().kv_block_tokens
    room = room_bytes(model, gpu, tensor_parallel, quantization, *memory)
    room *= model.kv_shards(tensor_parallel)
    if engine is not EngineType.VLLM or shared.windows == (None,):
        sglang = engine is EngineType.SGLANG
        counted = pools.sglang_layers(model, {}) if sglang else model.layers
        return _pool_tokens(model, room, kv_dtype_bytes, counted)
    blocks = _blocks(model, room, shared.layers, kv_dtype_bytes * block)
    return blocks * longest_tokens // shared.blocks(longest_tokens, longest_tokens, block)


def pool_blocks(launch: types.Launch, gpu: gpus.Gpu, block_tokens: int) -> int:
    """Blocks of that many tokens that an engine as it is started has for KV cache."""
    layers, model = tables(launch).layers, launch.model
    if layers == model.layers:
        return _capacity(launch, gpu) // block_tokens
    room = room_bytes(
        *(model, gpu, launch.tensor_parallel, launch.quantization),
        *(launch.gpu_memory_utilization, launch.engine),
    ) * model.kv_shards(launch.tensor_parallel)
    return _blocks(model, room, layers, launch.kv_dtype_bytes * block_tokens)


def capacity_of_launch(
    launch: types.Launch, gpu: gpus.Gpu, context_tokens: int | None = None
) -> int:
    """Tokens the KV cache of an engine as it is started holds, in sequences that long.

    None: as long as its longest, which is what vLLM logs.
    """
    shared = tables(launch)
    context = launch.max_model_tokens if context_tokens is None else max(1, context_tokens)
    if shared.windows == (None,):
        return _capacity(launch, gpu)
    block = constants.load().kv_block_tokens
    each = shared.blocks(context, launch.max_model_tokens, block)
    return pool_blocks(launch, gpu, block) * context // each


def longest_tokens(launch: types.Launch, gpu: gpus.Gpu) -> int:
    """The longest sequence, up to the engine's own limit, for which there are blocks; or 0."""
    shared, block = tables(launch), constants.load().kv_block_tokens
    blocks = pool_blocks(launch, gpu, block)
    lengths = range(1, launch.max_model_tokens + 1)
    return bisect.bisect_right(lengths, blocks, key=lambda each: shared.blocks(each, each, block))


def longest_bytes(launch: types.Launch) -> float:
    """Bytes of one GPU in the blocks of a sequence of the engine's maximum length."""
    shared, block, model = tables(launch), constants.load().kv_block_tokens, launch.model
    longest = launch.max_model_tokens
    of_token = model.kv_bytes_per_token * shared.layers * launch.kv_dtype_bytes / 2 / model.layers
    blocks = shared.blocks(longest, longest, block)
    return blocks * block * of_token / model.kv_shards(launch.tensor_parallel)


def sequences(launch: types.Launch, gpu: gpus.Gpu, context_tokens: int) -> int:
    """How many sequences that long the blocks are enough for at the same time.

    All but the last have given back what is out of their windows; it must get all to start.
    """
    shared, block = tables(launch), constants.load().kv_block_tokens
    if shared.windows == (None,):
        most = capacity_of_launch(launch, gpu, context_tokens) // context_tokens
        second = second_pool(launch, gpu)
        return most if second is None else min(most, second[1] // min(second[0], context_tokens))
    last = shared.blocks(context_tokens, launch.max_model_tokens, block)
    decoding = dataclasses.replace(shared, in_flight_tokens=1)
    each = decoding.blocks(context_tokens, launch.max_model_tokens, block)
    return max(0, 1 + (pool_blocks(launch, gpu, block) - last) // each)


def _blocks(model: Model, room_bytes: int, layers: int, block_dtype_bytes: int) -> int:
    """Blocks in that room which hold their tokens for so many layers."""
    block_bytes = model.kv_bytes_per_token * layers * block_dtype_bytes // 2
    return max(0, room_bytes * model.layers // block_bytes)


def second_pool(launch: types.Launch, gpu: gpus.Gpu) -> tuple[int, int] | None:
    """The window, and the tokens, of the pool that layers with a window have for themselves."""
    window = pools.second_window(launch)
    if window is None:
        return None
    return window, int(_capacity(launch, gpu) * pools.second_share(launch))


def _capacity(launch: types.Launch, gpu: gpus.Gpu) -> int:
    """Tokens of an engine whose sequences keep all their tokens, as far as its pool is counted."""
    model = launch.model
    room = room_bytes(
        *(model, gpu, launch.tensor_parallel, launch.quantization),
        *(launch.gpu_memory_utilization, launch.engine),
    ) * model.kv_shards(launch.tensor_parallel)
    return _pool_tokens(model, room, launch.kv_dtype_bytes, pools.counted_layers(launch))


def _pool_tokens(model: Model, room_bytes: int, kv_dtype_bytes: int, counted_layers: float) -> int:
    """Tokens of a pool each of which takes the memory of so many layers."""
    all_layers_bytes = model.kv_bytes(1, kv_dtype_bytes)
    return _whole_blocks(room_bytes * model.layers / (all_layers_bytes * counted_layers))


def _whole_blocks(tokens: float) -> int:
    block = constants.load().kv_block_tokens
    return max(0, int(tokens) // block * block)


def _visible_bytes(gpu: gpus.Gpu) -> int:
    # Of a slice the driver tells what it leaves.
    kept = 0 if gpu.mig_profile else constants.load().driver_reserve_bytes
    return gpu.driver_memory_bytes - kept
