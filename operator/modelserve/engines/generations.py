"""Generations of engines that differ in how a step is run, read from an engine's version.

vLLM before 0.8 (V0) computes prompts apart from decoding and does its host work between steps;
from 0.14 on, as with ``--async-scheduling`` before, host work hides behind the GPU. TensorRT-LLM
before 1.0 runs compiled engines, since then PyTorch with CUDA graphs. Numbers of each:
``catalog/data/constants.yaml``. From 0.10 on (own knowledge; 0.33's source says the same) vLLM lets
layers with and without sliding windows share blocks.
"""

import re
from collections.abc import Mapping
from enum import StrEnum

from modelserve.api.spec import EngineType

_VERSION = re.compile(r"(?<![\d.])v?(\d+)\.(\d+)")
_VLLM_V1 = (0, 8)
_VLLM_HYBRID = (0, 10)
_VLLM_ASYNC = (0, 14)
_TENSORRT_LLM_PYTORCH = (1, 0)


class Generation(StrEnum):
    """A way of running steps; the values are keys of the catalogue's constants."""

    VLLM_V0 = "vllm-v0"
    VLLM_V1 = "vllm-v1"
    VLLM_ASYNC = "vllm-async"
    SGLANG = "sglang"
    TENSORRT_LLM_COMPILED = "tensorrt-llm-compiled"
    TENSORRT_LLM_PYTORCH = "tensorrt-llm-pytorch"
    TGI = "tgi"


def version(text: str) -> tuple[int, int] | None:
    """Major and minor version in an image tag or a name (``v0.7.3``, ``vLLM 0.20.1``), if any."""
    found = _VERSION.search(text)
    return (int(found[1]), int(found[2])) if found else None


def of(engine: EngineType, text: str = "", *, asynchronous: bool = False) -> Generation:
    """The generation of an engine whose tag or name is ``text``; the newest if it says nothing.

    ``asynchronous``: vLLM was told to schedule asynchronously.
    """
    found = version(text)
    if engine is EngineType.VLLM:
        if found is not None and found < _VLLM_V1:
            return Generation.VLLM_V0
        if found is not None and found < _VLLM_ASYNC and not asynchronous:
            return Generation.VLLM_V1
        return Generation.VLLM_ASYNC
    if engine is EngineType.TENSORRT_LLM:
        if found is not None and found < _TENSORRT_LLM_PYTORCH:
            return Generation.TENSORRT_LLM_COMPILED
        return Generation.TENSORRT_LLM_PYTORCH
    if engine is EngineType.SGLANG:
        return Generation.SGLANG
    # NIM 1 and Triton's backend run compiled engines.
    return Generation.TGI if engine is EngineType.TGI else Generation.TENSORRT_LLM_COMPILED


def shares_blocks(engine: EngineType, text: str = "") -> bool:
    """Whether layers with windows and those without share the blocks of the KV cache."""
    found = version(text)
    return engine is EngineType.VLLM and (found is None or found >= _VLLM_HYBRID)


def lags(engine: EngineType, text: str, options: Mapping[str, str]) -> bool:
    """Whether the next step is decided while one is under way, so without what comes of it."""
    told = options.get("async-scheduling")
    of_itself = of(engine, text) is Generation.VLLM_ASYNC
    return engine is EngineType.VLLM and (of_itself if told is None else told != "false")
