"""How many tokens of KV cache a replica has room for, and what is left of GPU memory for it.

The rule is read from engines' start-up logs (``catalog/data/models.yaml``, kv_capacity_seen): share
of the visible memory, less weights and the peak of the profile run; whole blocks of 16 tokens.
"""

from modelserve.api.spec import Quantization
from modelserve.catalog import constants, gpus
from modelserve.catalog.architecture import Model


def usable_bytes(gpu: gpus.Gpu, gpu_memory_utilization: float = 0.9) -> int:
    """Bytes of one GPU for weights and KV cache together."""
    fixed = constants.load()
    visible = gpu.driver_memory_bytes - fixed.driver_reserve_bytes
    return max(0, round(visible * gpu_memory_utilization) - fixed.activation_reserve_bytes)


def room_bytes(
    model: Model,
    gpu: gpus.Gpu,
    tensor_parallel: int,
    quantization: str = Quantization.NONE,
    gpu_memory_utilization: float = 0.9,
) -> int:
    """Bytes of one GPU left for KV cache; negative if the weights do not fit."""
    weights = model.weight_bytes(quantization) / tensor_parallel
    return usable_bytes(gpu, gpu_memory_utilization) - round(weights)


def capacity_tokens(
    model: Model,
    gpu: gpus.Gpu,
    tensor_parallel: int,
    quantization: str = Quantization.NONE,
    gpu_memory_utilization: float = 0.9,
) -> int:
    """Tokens the KV cache of a replica holds, over all its GPUs; 0 if there is no room.

    At 16 bit; layers with a sliding window are counted in full, which is on the safe side.
    """
    room = room_bytes(model, gpu, tensor_parallel, quantization, gpu_memory_utilization)
    per_gpu_token = model.kv_bytes_per_token / model.kv_shards(tensor_parallel)
    block = constants.load().kv_block_tokens
    return max(0, int(room / per_gpu_token) // block * block)
