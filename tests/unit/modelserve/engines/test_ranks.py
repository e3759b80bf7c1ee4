"""Engines that find fewer GPUs than they have ranks."""

from typing import Any

import pytest

from modelserve import errors
from modelserve.engines import launch, ranks, types

VLLM = ("vllm/vllm-openai:v0.33.0", ["vllm", "serve", "Qwen/Qwen2.5-7B-Instruct"])
SGLANG = (
    "lmsysorg/sglang:v0.5.23",
    ["python3", "-m", "sglang.launch_server", "--model-path=Qwen/Qwen2.5-7B-Instruct"],
)
TENSORRT = (
    "nvcr.io/nvidia/tensorrt-llm/release:1.3.0",
    ["trtllm-serve", "Qwen/Qwen2.5-7B-Instruct"],
)
TGI = (
    "ghcr.io/huggingface/text-generation-inference:3.3.7",
    ["text-generation-launcher", "--model-id=Qwen/Qwen2.5-7B-Instruct"],
)


def parsed(engine: tuple[str, list[str]], *more: str) -> types.Launch:
    container: dict[str, Any] = {"image": engine[0], "command": [*engine[1], *more]}
    found = launch.parse(container, {})
    assert found is not None
    return found


def test_as_many_gpus_as_ranks_are_enough() -> None:
    ranks.check(parsed(VLLM, "--tensor-parallel-size=2"), 2)


@pytest.mark.parametrize(
    ("engine", "flag", "words"),
    [
        pytest.param(
            VLLM,
            "--tensor-parallel-size=2",
            r"World size \(2\) is larger than the number of available GPUs \(1\) in this node",
            id="vllm",
        ),
        pytest.param(SGLANG, "--tp-size=2", "CUDA error: invalid device ordinal", id="sglang"),
        pytest.param(TENSORRT, "--tp_size=2", "Only 1 GPUs are available, but 2", id="tensorrt"),
        pytest.param(TGI, "--num-shard=2", "Each process is one gpu", id="tgi"),
    ],
)
def test_one_gpu_for_two_ranks_ends_it(
    engine: tuple[str, list[str]], flag: str, words: str
) -> None:
    with pytest.raises(errors.StartRefused, match=words):
        ranks.check(parsed(engine, flag), 1)


@pytest.mark.parametrize("flag", ["--distributed-executor-backend=ray", "--nnodes=2"])
def test_a_vllm_over_several_nodes_does_not_count_its_own(flag: str) -> None:
    ranks.check(parsed(VLLM, "--tensor-parallel-size=16", flag), 8)


def test_an_sglang_over_several_nodes_has_ranks_elsewhere() -> None:
    ranks.check(parsed(SGLANG, "--tp-size=16", "--nnodes=2"), 8)


@pytest.mark.parametrize("flag", ["--distributed-executor-backend=mp", "--nnodes=1"])
def test_a_vllm_on_one_node_fails_sooner_or_later(flag: str) -> None:
    with pytest.raises(errors.StartRefused):
        ranks.check(parsed(VLLM, "--tensor-parallel-size=16", flag), 8)
