"""Arguments of an engine that say otherwise than its spec."""

from typing import Any

import pytest

from modelserve.api import spec as specs
from modelserve.decide import prediction

PLAIN: dict[str, Any] = {
    "model": {"name": "meta-llama/Llama-3.1-8B-Instruct"},
    "gpu": {"product": "h100"},
}


def told(**engine: Any) -> str | None:
    """The condition's sentence; None if the model is served."""
    spec = specs.ModelServeSpec.model_validate({**PLAIN, "engine": engine})
    found = prediction.assess("llama", spec)
    if not isinstance(found, prediction.Problem):
        return None
    assert found.reason == "ArgumentsContradictSpec"
    return found.message


@pytest.mark.parametrize(
    ("engine", "args", "field"),
    [
        ("vllm", ["--tensor-parallel-size", "2"], "gpu.tensorParallel is 1"),
        ("vllm", ["-tp=2"], "gpu.tensorParallel is 1"),
        ("vllm", ["--max-num-seqs=64"], "engine.batching.maxSequences is 32"),
        ("vllm", ["--max-num-batched-tokens=2k"], "engine.batching.maxBatchedTokens is 8192"),
        ("vllm", ["--served-model-name=x"], "model.servedName is llama"),
        ("vllm", ["--port=9000"], "Service and probes go to 8000"),
        ("sglang", ["--tp", "2"], "gpu.tensorParallel is 1"),
        ("sglang", ["--max-running-requests=4"], "engine.batching.maxSequences is 32"),
        ("tensorrt-llm", ["--tp_size=2"], "gpu.tensorParallel is 1"),
        ("triton", ["--openai-port=9000"], "Service and probes go to 8000"),
        ("tensorrt-llm", ["--tensor_parallel_size=2"], "gpu.tensorParallel is 1"),
        ("tgi", ["-p", "9000"], "Service and probes go to 8000"),
        ("tgi", ["-p9000"], "Service and probes go to 8000"),
        ("tgi", ["-p=9000"], "Service and probes go to 8000"),
        ("tgi", ["--num-shard=2"], "gpu.tensorParallel is 1"),
        ("tgi", ["--max-batch-size", "4"], "engine.batching.maxSequences is 32"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_an_argument_that_says_otherwise_is_named_with_its_field(
    engine: str, args: list[str], field: str
) -> None:
    said = told(type=engine, args=["--first", *args, "--last"] if engine == "tgi" else args)
    assert said is not None
    assert said.startswith(f"engine.args {' '.join(args)} ")
    assert field in said
    assert "take it out" in said


def test_variables_of_an_engine_that_has_no_arguments_count_as_well() -> None:
    env = [{"name": "A", "value": "b"}, {"name": "NIM_TENSOR_PARALLEL_SIZE", "value": "2"}]
    said = told(type="nim", env=env)
    assert said is not None
    assert said.startswith("engine.env NIM_TENSOR_PARALLEL_SIZE=2 tells the engine 2, but gpu.")


@pytest.mark.parametrize(
    "args",
    [
        ["--seed=1"],
        ["--tensor-parallel-size=1", "--port", "8000"],
        ["--max-num-seqs=64", "--max-num-seqs=32"],  # the last one counts
        ["--max-num-seqs"],  # refused by the engine, which says so
        ["--max-model-len=auto"],  # engine.maxModelLength is left out
    ],
    ids=lambda args: args[0],
)
def test_other_arguments_are_passed_through(args: list[str]) -> None:
    assert told(args=args) is None


def test_a_length_contradicts_one_that_the_spec_has() -> None:
    said = told(args=["--max-model-len=4096"], maxModelLength=2048)
    assert said is not None
    assert "engine.maxModelLength is 2048" in said


def test_a_length_past_the_context_hides_no_contradiction() -> None:
    env = [{"name": "VLLM_ALLOW_LONG_MAX_MODEL_LEN", "value": "1"}]
    assert told(maxModelLength=140_000, env=env) is None
    assert told(maxModelLength=140_000, env=env, args=["--max-num-seqs=8"]) is not None


@pytest.mark.parametrize("engine", list(specs.EngineType))
def test_what_an_engine_has_no_word_for_is_no_contradiction(engine: specs.EngineType) -> None:
    batching = {"maxSequences": 17, "maxBatchedTokens": 4097}
    assert told(type=engine, batching=batching, env=[{"name": "A", "value": "b"}]) is None


def test_an_image_of_another_engine_is_told() -> None:
    engine = {"type": "sglang", "image": "vllm/vllm-openai:v0.33.0"}
    spec = specs.ModelServeSpec.model_validate({**PLAIN, "engine": engine})
    found = prediction.assess("llama", spec)
    assert isinstance(found, prediction.Problem)
    assert (found.reason, found.message) == (
        "ImageLacksEngine",
        "engine.image vllm/vllm-openai:v0.33.0 has vllm, not sglang: take it out, or set "
        "engine.type to vllm",
    )
