"""Constants of the step law and of GPU memory, from ``data/constants.yaml``."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelserve.api.spec import EngineType
from modelserve.catalog import files

GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Constants:
    """Global constants: shares are of a peak, between 0 and 1; times are seconds."""

    weight_share_16_bit: float
    weight_share_8_or_4_bit: float
    kv_share: float
    overhead_per_layer_s: tuple[tuple[str, float], ...]
    per_sequence_of_s: tuple[tuple[str, float], ...]
    mfu_16_bit: float
    mfu_8_bit: float
    first_token_of_s: tuple[tuple[str, float], ...]
    all_reduce_calls_per_layer: int
    all_reduce_small_fast_s: float
    all_reduce_small_pcie_per_gpu_s: float
    all_reduce_share_fast: float
    all_reduce_share_pcie: float
    driver_reserve_bytes: int
    activation_reserve_bytes: int
    gpu_memory_utilization: float
    kv_block_tokens: int

    def overhead_s(self, engine: EngineType) -> float:
        """Fixed seconds per layer and step of that engine: launches, norms, host work."""
        return dict(self.overhead_per_layer_s)[engine.value]

    def per_sequence_s(self, engine: EngineType) -> float:
        """Seconds of that engine's host work per decoding sequence and step."""
        return dict(self.per_sequence_of_s)[engine.value]

    def first_token_constant_s(self, engine: EngineType) -> float:
        """Seconds a first token takes besides its step: HTTP front end, tokenizer, queue."""
        return dict(self.first_token_of_s)[engine.value]

    def weight_share(self, bits: int) -> float:
        """Share of the memory bandwidth at which weights of that many bits are read."""
        return self.weight_share_16_bit if bits == 16 else self.weight_share_8_or_4_bit

    def mfu(self, weight_format: str) -> float:
        """Share of the dense peak that prefill reaches with weights of that format."""
        return self.mfu_8_bit if weight_format in ("fp8", "mxfp4") else self.mfu_16_bit


@functools.cache
def load() -> Constants:
    """The constants, read once."""
    document = files.load("constants")
    reduce = document["all_reduce"]
    return Constants(
        weight_share_16_bit=document["weight_read_share"]["bits_16"],
        weight_share_8_or_4_bit=document["weight_read_share"]["bits_8_or_4"],
        kv_share=document["kv_read_share"]["value"],
        overhead_per_layer_s=_by_engine(document["overhead_us_per_layer"], 1e6),
        per_sequence_of_s=_by_engine(document["per_sequence_us"], 1e6),
        mfu_16_bit=document["prefill_mfu"]["bits_16"],
        mfu_8_bit=document["prefill_mfu"]["bits_8"],
        first_token_of_s=_by_engine(document["first_token_constant_ms"], 1e3),
        all_reduce_calls_per_layer=reduce["calls_per_layer"],
        all_reduce_small_fast_s=reduce["small_us_fast"] / 1e6,
        all_reduce_small_pcie_per_gpu_s=reduce["small_us_per_gpu_pcie"] / 1e6,
        all_reduce_share_fast=reduce["share_fast"],
        all_reduce_share_pcie=reduce["share_pcie"],
        driver_reserve_bytes=round(document["driver_reserve_gib"]["value"] * GIB),
        activation_reserve_bytes=round(document["activation_reserve_gib"]["value"] * GIB),
        gpu_memory_utilization=document["gpu_memory_utilization"]["value"],
        kv_block_tokens=document["kv_block_tokens"]["value"],
    )


def _by_engine(row: Mapping[str, Any], per_s: float) -> tuple[tuple[str, float], ...]:
    """A row with one number per engine, in seconds; ``per_s`` of its unit make one."""
    return tuple((engine.value, row[engine.value] / per_s) for engine in EngineType)
