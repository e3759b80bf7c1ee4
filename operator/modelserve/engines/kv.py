"""How many tokens of KV cache a replica has room for, and what is left of GPU memory for it.

The rule is read from engines' start-up logs (``catalog/data/models.yaml``, kv_capacity_seen): share
of the visible memory, less weights and the peak of the profile run; whole blocks of 16 tokens.
TensorRT-LLM takes its share of what weights and buffers leave instead.
"""

from modelserve.api.spec import EngineType, Quantization
from modelserve.catalog import constants, gpus
from modelserve.catalog.architecture import Model
from modelserve.engines import types

# Their memory share is one of the free memory (KvCacheConfig.free_gpu_memory_fraction).
_OF_FREE_MEMORY = (EngineType.TENSORRT_LLM, EngineType.TRITON)


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
    if engine in _OF_FREE_MEMORY:
        reserve = constants.load().activation_reserve_bytes
        return round((_visible_bytes(gpu) - reserve - weights) * gpu_memory_utilization)
    return usable_bytes(gpu, gpu_memory_utilization) - weights


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
    block = constants.load().kv_block_tokens
    return max(0, int(held) // block * block)


def capacity_of_launch(launch: types.Launch, gpu: gpus.Gpu, context_tokens: int = 1) -> int:
    """Tokens the KV cache of an engine as it is started holds, in sequences that long."""
    return capacity_tokens(
        launch.model,
        gpu,
        launch.tensor_parallel,
        launch.quantization,
        launch.gpu_memory_utilization,
        launch.engine,
        launch.kv_dtype_bytes,
        context_tokens,
    )


def _visible_bytes(gpu: gpus.Gpu) -> int:
    return gpu.driver_memory_bytes - constants.load().driver_reserve_bytes
