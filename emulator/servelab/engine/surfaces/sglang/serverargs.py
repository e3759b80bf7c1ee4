"""The arguments of an SGLang server as ``/server_info`` tells them: all, most as they are if unset.

Those that the real server settles while it starts are told as far as this engine goes by them.
"""

import functools
from collections.abc import Mapping
from typing import Any

from modelserve.engines import arguments, sglang
from servelab.engine.assembly import EngineSpec

# Told under other names than their flags', or not at all.
_RENAMED = {
    "elastic_ep_join_mode": "ep_join_mode",
    "elastic_ep_join_rank_offset": "ep_join_rank_offset",
    "fp4_gemm_backend": "fp4_gemm_runner_backend",
    "fp8_gemm_backend": "fp8_gemm_runner_backend",
}
_UNTOLD = ("config", "monokernel_backend")


def resolved(spec: EngineSpec) -> dict[str, Any]:
    """The arguments of this engine."""
    config = spec.config
    told = dict(_defaults())
    for name, value in spec.options:
        told[name.replace("-", "_")] = _typed(name, value)
    return told | {
        "model_path": spec.model_name,
        "tokenizer_path": spec.model_name,
        "served_model_name": spec.served_name,
        "device": "cuda",
        "context_length": config.max_model_tokens,
        "mem_fraction_static": spec.gpu_memory_utilization,
        "max_running_requests": config.max_sequences,
        "max_queued_requests": config.queue_limit,
        "chunked_prefill_size": config.max_batched_tokens,
        "page_size": config.block_size,
        "disable_radix_cache": not config.prefix_caching,
        "random_seed": spec.seed,
    }


@functools.cache
def _arguments() -> Mapping[str, arguments.Argument]:
    table = arguments.load(f"sglang-{sglang.PROFILE.version}")
    return {argument.name: argument for argument in table.arguments}


@functools.cache
def _defaults() -> Mapping[str, Any]:
    told: dict[str, Any] = {}
    for flag, argument in _arguments().items():
        name = flag.replace("-", "_")
        unset = False if argument.is_switch and argument.default is None else argument.default
        if name not in _UNTOLD:
            told[_RENAMED.get(name, name)] = unset
    return told


def _typed(name: str, value: str) -> Any:
    argument = _arguments().get(name)
    if argument is None or argument.is_switch:
        return True
    return int(value) if argument.kind == "int" and value.isdecimal() else value
