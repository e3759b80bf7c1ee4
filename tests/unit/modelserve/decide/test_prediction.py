"""A spec against the catalogue."""

from typing import Any

import pytest

from modelserve.api import names
from modelserve.api import spec as specs
from modelserve.decide import prediction

LLAMA_8B: dict[str, Any] = {
    "model": {"name": "meta-llama/Llama-3.1-8B-Instruct"},
    "gpu": {"product": "h100"},
}


def assess(**changes: Any) -> prediction.Assessment | prediction.Problem:
    spec = specs.ModelServeSpec.model_validate({**LLAMA_8B, **changes})
    return prediction.assess("llama", spec)


def assessed(**changes: Any) -> prediction.Assessment:
    found = assess(**changes)
    assert isinstance(found, prediction.Assessment)
    return found


def test_slots_are_the_batch_limit_where_the_kv_cache_has_room() -> None:
    assert assessed().slots == 32


def test_slots_per_replica_of_the_gateway_come_first() -> None:
    assert assessed(gateway={"slotsPerReplica": 5}).slots == 5


def test_slots_shrink_to_what_the_kv_cache_holds() -> None:
    engine = {"batching": {"maxSequences": 4096}, "maxModelLength": 8192}
    assert 1 < assessed(engine=engine).slots < 4096


def test_a_length_that_is_left_out_is_no_longer_than_the_models_context() -> None:
    short = {"name": "meta-llama/Llama-2-7b-hf"}
    assert assessed().launch.max_model_tokens == 8192
    assert assessed(model=short).launch.max_model_tokens == 4096


def test_a_model_nobody_knows_has_the_length_that_any_would() -> None:
    spec = specs.ModelServeSpec.model_validate({**LLAMA_8B, "model": {"name": "q"}})
    assert prediction.max_model_tokens(spec) == 8192


def test_more_than_the_models_context_is_taken_where_the_engine_is_told_so() -> None:
    env = [{"name": "VLLM_ALLOW_LONG_MAX_MODEL_LEN", "value": "1"}]
    found = assessed(
        model={"name": "meta-llama/Llama-2-7b-hf"}, engine={"maxModelLength": 8192, "env": env}
    )
    assert found.launch.max_model_tokens == 8192


def test_a_slower_node_makes_a_longer_cold_start() -> None:
    slow = {names.REGISTRY_BANDWIDTH: "10MB/s"}
    assert assessed().cold_start(slow).image_pull_s > assessed().cold_start().image_pull_s


def test_an_image_that_is_there_is_not_pulled() -> None:
    assert assessed().cold_start(image_present=True).image_pull_s < 1


def test_an_unreadable_node_annotation_counts_as_missing() -> None:
    broken = {names.REGISTRY_BANDWIDTH: "fast"}
    assert assessed().cold_start(broken) == assessed().cold_start()


def test_an_unknown_model_is_told_how_to_be_described() -> None:
    found = assess(model={"name": "q"})
    assert isinstance(found, prediction.Problem)
    assert found.message == (
        "unknown model 'q'; `servelab catalog models` lists those there are; for any other, "
        "describe its shape in model.custom"
    )


def test_a_model_may_be_described_by_its_shape() -> None:
    custom = {"parameters": 10**9, "layers": 16, "hidden": 2048}
    model = {"name": "mine", "custom": custom}
    assert assessed(model=model, storage={"class": "nvme"}).launch.model.name == "mine"


@pytest.mark.parametrize(
    ("changes", "reason", "words"),
    [
        ({"model": {"name": "meta/lama"}}, "UnknownModel", "did you mean"),
        ({"model": {"name": "x", "custom": {"layers": 3}}}, "InvalidModel", "hidden"),
        ({"gpu": {"product": "h1000"}}, "UnknownGPU", "did you mean"),
        ({"storage": {"class": "floppy"}}, "UnknownStorageClass", "'floppy'; there are "),
        (
            {"model": {"name": "meta-llama/Llama-3.1-70B-Instruct"}},
            "WeightsDoNotFit",
            "tensorParallel 2",
        ),
        (
            {"model": {"name": "meta-llama/Llama-2-7b-hf"}, "engine": {"maxModelLength": 4097}},
            "LongerThanContext",
            "lower it to 4096 or less",
        ),
        (
            {
                "model": {**LLAMA_8B["model"], "quantization": "fp8"},
                "gpu": {"product": "a100-80gb"},
            },
            "QuantizationUnsupported",
            "fp8",
        ),
    ],
    ids=["model", "shape", "gpu", "storage", "too-large", "too-long", "fp8"],
)
def test_what_cannot_be_served_is_a_problem_with_its_mend(
    changes: dict[str, Any], reason: str, words: str
) -> None:
    found = assess(**changes)
    assert isinstance(found, prediction.Problem)
    assert found.reason == reason
    assert words in found.message
