"""Constants of the step law and of GPU memory, from ``data/constants.yaml``."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelserve.catalog import files

GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Times:
    """What one generation of an engine adds to the hardware's time; all times are seconds.

    ``layer_s`` is GPU time of a layer besides its matrices and attention: latencies of its small
    kernels; one with experts takes ``expert_layer_s`` more. ``launch_s`` is the host's time to
    launch a layer that no CUDA graph holds, as in steps with prompts, ``launch_parallel_s`` what it
    is more on several GPUs, where collectives wait for the slowest host; up to ``captured_tokens``
    in the step it is ``captured_launch_s``. ``step_s`` and ``sequence_s`` are host work of a step
    and of each of its sequences, which an engine that is ``overlapped`` hides behind the GPU.
    ``prompt_step_s`` is what a step with prompts takes besides, ``prompt_step_parallel_s`` what it
    takes more on several GPUs. ``front_s`` lies before the first step. ``hidden_share`` is how much
    of the shorter of reading and computing hides behind the longer. ``mixes``: prompts and decoding
    share a step.
    """

    layer_s: float
    expert_layer_s: float
    launch_s: float
    launch_parallel_s: float
    captured_launch_s: float
    captured_tokens: int
    step_s: float
    sequence_s: float
    prompt_step_s: float
    prompt_step_parallel_s: float
    front_s: float
    hidden_share: float
    operations_per_byte_8_bit: float
    overlapped: bool
    mixes: bool


@dataclass(frozen=True, slots=True)
class Constants:
    """Global constants: shares are of a peak, between 0 and 1; times are seconds."""

    weight_share_16_bit: float
    weight_share_8_bit: float
    weight_share_4_bit: float
    kv_share: float
    operations_per_byte_16_bit: float
    attention_share: float
    expert_share: float
    latent_layer_s: float
    sampling_bytes_per_token: float
    http_front_s: float
    times_of: Mapping[str, Times]
    all_reduce_calls_per_layer: int
    all_reduce_small_fast_s: float
    all_reduce_small_pcie_per_gpu_s: float
    all_reduce_share_fast: float
    all_reduce_share_pcie: float
    all_reduce_share_staged: float
    driver_reserve_bytes: int
    activation_reserve_bytes: int
    gpu_memory_utilization: float
    kv_block_tokens: int

    def times(self, generation: str) -> Times:
        """Of that generation of an engine."""
        return self.times_of[generation]

    def weight_share(self, bits: int) -> float:
        """Share of the memory bandwidth at which weights of that many bits are read."""
        return {16: self.weight_share_16_bit, 8: self.weight_share_8_bit}.get(
            bits, self.weight_share_4_bit
        )

    def all_reduce_share(self, fast: bool, peer_to_peer: bool) -> float:
        """Share of the one-way link rate that an all-reduce reaches."""
        if fast:
            return self.all_reduce_share_fast
        staged = 1.0 if peer_to_peer else self.all_reduce_share_staged
        return self.all_reduce_share_pcie * staged


@functools.cache
def load() -> Constants:
    """The constants, read once."""
    document = files.load("constants")
    reduce, weights = document["all_reduce"], document["weight_read_share"]
    return Constants(
        weight_share_16_bit=weights["bits_16"],
        weight_share_8_bit=weights["bits_8"],
        weight_share_4_bit=weights["bits_4"],
        kv_share=document["kv_read_share"]["value"],
        operations_per_byte_16_bit=document["operations_per_byte_16_bit"]["value"],
        attention_share=document["attention_share"]["value"],
        expert_share=document["expert_share"]["value"],
        latent_layer_s=document["latent_layer_us"]["value"] / 1e6,
        sampling_bytes_per_token=document["sampling_bytes_per_token"]["value"],
        http_front_s=document["http_front_ms"]["value"] / 1e3,
        times_of={name: _times(row) for name, row in document["generations"].items()},
        all_reduce_calls_per_layer=reduce["calls_per_layer"],
        all_reduce_small_fast_s=reduce["small_us_fast"] / 1e6,
        all_reduce_small_pcie_per_gpu_s=reduce["small_us_per_gpu_pcie"] / 1e6,
        all_reduce_share_fast=reduce["share_fast"],
        all_reduce_share_pcie=reduce["share_pcie"],
        all_reduce_share_staged=reduce["share_staged"],
        driver_reserve_bytes=round(document["driver_reserve_gib"]["value"] * GIB),
        activation_reserve_bytes=round(document["activation_reserve_gib"]["value"] * GIB),
        gpu_memory_utilization=document["gpu_memory_utilization"]["value"],
        kv_block_tokens=document["kv_block_tokens"]["value"],
    )


def _times(row: Mapping[str, Any]) -> Times:
    return Times(
        layer_s=row["layer_us"] / 1e6,
        expert_layer_s=row["expert_layer_us"] / 1e6,
        launch_s=row["launch_us"] / 1e6,
        launch_parallel_s=row["launch_parallel_us"] / 1e6,
        captured_launch_s=row["captured_launch_us"] / 1e6,
        captured_tokens=row["captured_tokens"],
        step_s=row["step_ms"] / 1e3,
        sequence_s=row["sequence_us"] / 1e6,
        prompt_step_s=row["prompt_step_ms"] / 1e3,
        prompt_step_parallel_s=row["prompt_step_parallel_ms"] / 1e3,
        front_s=row["front_ms"] / 1e3,
        hidden_share=row["hidden_share"],
        operations_per_byte_8_bit=row["operations_per_byte_8_bit"],
        overlapped=row["overlapped"],
        mixes=row["mixes"],
    )
