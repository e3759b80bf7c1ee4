"""The generation of an engine, from its version."""

import pytest

from modelserve.api.spec import EngineType
from modelserve.catalog import constants
from modelserve.engines import generations
from modelserve.engines.generations import Generation


@pytest.mark.parametrize(
    ("engine", "text", "generation"),
    [
        (EngineType.VLLM, "vLLM 0.7.3", Generation.VLLM_V0),
        (EngineType.VLLM, "v0.8.5", Generation.VLLM_V1),
        (EngineType.VLLM, "vllm 0.12.0", Generation.VLLM_V1),
        (EngineType.VLLM, "vLLM 0.19.1rc1.dev339", Generation.VLLM_ASYNC),
        (EngineType.VLLM, "v1.0.0", Generation.VLLM_ASYNC),
        (EngineType.VLLM, "latest", Generation.VLLM_ASYNC),
        (EngineType.TENSORRT_LLM, "TensorRT-LLM 0.17", Generation.TENSORRT_LLM_COMPILED),
        (EngineType.TENSORRT_LLM, "1.0.0rc3", Generation.TENSORRT_LLM_PYTORCH),
        (EngineType.TENSORRT_LLM, "", Generation.TENSORRT_LLM_PYTORCH),
        (EngineType.TRITON, "25.04-trtllm-python-py3", Generation.TENSORRT_LLM_COMPILED),
    ],
)
def test_a_version_says_the_generation(
    engine: EngineType, text: str, generation: Generation
) -> None:
    assert generations.of(engine, text) is generation


def test_asynchronous_scheduling_can_be_asked_for_before_it_was_the_default() -> None:
    found = generations.of(EngineType.VLLM, "v0.11.0", asynchronous=True)
    assert found is Generation.VLLM_ASYNC


@pytest.mark.parametrize("generation", list(Generation))
def test_the_catalogue_has_times_of_every_generation(generation: Generation) -> None:
    assert constants.load().times(generation).layer_s > 0
