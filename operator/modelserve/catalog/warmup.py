"""How long an engine starts besides reading weights, by named part; from ``data/warmup.yaml``."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelserve.api.spec import EngineType
from modelserve.catalog import files


@dataclass(frozen=True, slots=True)
class Constants:
    """Start-up constants of one engine, in seconds; zero for parts it does not have."""

    process_start_s: float
    distributed_base_s: float
    distributed_per_rank_s: float
    compile_base_s: float
    compile_per_layer_s: float
    compile_parallel_factor: float
    cached_base_s: float
    cached_per_layer_s: float
    cached_factors: tuple[tuple[int, float], ...]
    profile_run_s: float
    capture_one_gpu_s: float
    capture_largest: int
    capture_ms: tuple[tuple[int, float], ...]
    api_server_s: float

    def distributed_init_s(self, tensor_parallel: int) -> float:
        """Seconds until the ranks have found each other; 0 with one."""
        if tensor_parallel <= 1:
            return 0.0
        return self.distributed_base_s + self.distributed_per_rank_s * tensor_parallel

    def compile_s(self, layers: int, tensor_parallel: int, cached: bool) -> float:
        """Seconds of torch.compile, cold or from its cache."""
        if cached:
            factor = _at(self.cached_factors, tensor_parallel, 1.0)
            return (self.cached_base_s + self.cached_per_layer_s * layers) * factor
        factor = self.compile_parallel_factor if tensor_parallel > 1 else 1.0
        return (self.compile_base_s + self.compile_per_layer_s * layers) * factor

    def graph_capture_s(self, layers: int, tensor_parallel: int, max_sequences: int) -> float:
        """Seconds of CUDA graph capture, one graph per batch size up to twice the batch limit."""
        if tensor_parallel <= 1:
            return self.capture_one_gpu_s
        sizes = 3 + min(2 * max_sequences, self.capture_largest) // 8
        return sizes * layers * _at(self.capture_ms, tensor_parallel, 0.0) / 1e3


@functools.cache
def of_engine(engine: EngineType) -> Constants:
    """The start-up constants of an engine."""
    entry: Mapping[str, Any] = files.load("warmup")["engines"][engine.value]
    cold = entry.get("compile_cold", {"base_s": 0.0, "per_layer_s": 0.0, "factor": 1.0})
    cached = entry.get("compile_cached", {"base_s": 0.0, "per_layer_s": 0.0, "factors": {}})
    distributed, capture = entry["distributed_init"], entry["graph_capture"]
    return Constants(
        process_start_s=entry["process_start"]["value"],
        distributed_base_s=distributed["base_s"],
        distributed_per_rank_s=distributed["per_rank_s"],
        compile_base_s=cold["base_s"],
        compile_per_layer_s=cold["per_layer_s"],
        compile_parallel_factor=cold["factor"],
        cached_base_s=cached["base_s"],
        cached_per_layer_s=cached["per_layer_s"],
        cached_factors=tuple(sorted(cached["factors"].items())),
        profile_run_s=entry["profile_run"]["value"],
        capture_one_gpu_s=capture["one_gpu_s"],
        capture_largest=capture["largest"],
        capture_ms=tuple(sorted(capture["ms_per_size_and_layer"].items())),
        api_server_s=entry["api_server"]["value"],
    )


def host_to_gpu_share() -> float:
    """Share of the PCIe rate that weights reach on their way from host memory to the GPU."""
    share: float = files.load("warmup")["host_to_gpu_share_of_pcie"]["value"]
    return share


def _at(rows: tuple[tuple[int, float], ...], tensor_parallel: int, below: float) -> float:
    """The value of the largest row not above ``tensor_parallel``."""
    values = [value for size, value in rows if size <= tensor_parallel]
    return values[-1] if values else below
