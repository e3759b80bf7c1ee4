"""What a GPU and its link do in a second: the rates that a step law divides by.

Shares of the peaks and their sources: ``catalog/data/constants.yaml``.
"""

from modelserve.catalog import constants, gpus
from modelserve.catalog.architecture import Model


def flops(
    model: Model, gpu: gpus.Gpu, quantization: str, times: constants.Times, fp4_units: bool
) -> float:
    """Operations per second of one GPU in large matrices.

    Besides computing at peak they move activations: a byte for so many operations.
    """
    weights = model.format(quantization)
    peak = gpu.flops(weights)
    if fp4_units and gpu.flops_fp4 is not None:
        peak = gpu.flops_fp4
    narrow = peak > gpu.flops_16_bit
    per_byte = (
        times.operations_per_byte_8_bit if narrow else constants.load().operations_per_byte_16_bit
    )
    moved = peak / gpu.bandwidth_bytes_per_s / per_byte
    return gpu.compute_share * peak / (1 + moved)


def compute(model: Model, flops_per_s: float) -> tuple[float, float]:
    """Seconds of a token in all layers, and of a row in the output head."""
    head, experts = model.vocab * model.hidden, model.expert_parameters_per_token()
    rest = max(0, model.compute_parameters() - head - experts)
    share = constants.load().expert_share
    return 2 * (rest + experts / share) / flops_per_s, 2 * head / flops_per_s


def attention(model: Model, gpu: gpus.Gpu) -> float:
    """Seconds of one GPU for each pair of tokens of a prompt."""
    share = constants.load().attention_share * gpu.compute_share
    return 4 * model.heads * model.head_dim * model.layers / (share * gpu.flops_16_bit)


def all_reduce(
    fixed: constants.Constants, gpu: gpus.Gpu, tensor_parallel: int
) -> tuple[float, float]:
    """Seconds of a small all-reduce, and more for each byte of a larger one."""
    if tensor_parallel == 1:
        return 0.0, 0.0
    fast, link_bytes_per_s = gpu.link(tensor_parallel)
    small_s = (
        fixed.all_reduce_small_fast_s
        if fast
        else fixed.all_reduce_small_pcie_per_gpu_s * tensor_parallel
    )
    share = fixed.all_reduce_share(fast, gpu.peer_to_peer)
    return small_s, (tensor_parallel - 1) / tensor_parallel / (share * link_bytes_per_s)
