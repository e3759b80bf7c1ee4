"""More than a model's own context, as each engine takes it."""

import pytest

from modelserve import errors
from modelserve.api.spec import EngineType
from modelserve.catalog import models
from modelserve.engines import context, launch

SHORT = models.find("llama-2-7b-hf")


def vllm(env: list[dict[str, str]], *args: str) -> launch.Launch | None:
    container = {"image": "vllm/vllm-openai:v0.33.0", "args": list(args), "env": env}
    return launch.parse(container, {})


def test_vllm_refuses_it_in_its_own_words() -> None:
    with pytest.raises(errors.StartRefused) as caught:
        vllm([], SHORT.name, "--max-model-len=8192")
    first, second = str(caught.value).splitlines()
    assert first.endswith("ValidationError: 1 validation error for ModelConfig")
    assert "(8192) is greater than the derived max_model_len (max_position_embed" in second
    assert "set the env var VLLM_ALLOW_LONG_MAX_MODEL_LEN=1. VLLM_ALLOW_LONG_" in second


def test_vllm_takes_it_where_its_variable_says_so() -> None:
    found = vllm(
        [{"name": "VLLM_ALLOW_LONG_MAX_MODEL_LEN", "value": "1"}],
        *(SHORT.name, "--max-model-len=8k"),
    )
    assert found is not None
    assert found.max_model_tokens == 8000


def test_sglang_refuses_it_in_its_own_words() -> None:
    with pytest.raises(errors.StartRefused, match=r"context_length \(4096\)\. This may lead to"):
        context.taken(EngineType.SGLANG, SHORT, 4097, {})


@pytest.mark.parametrize(
    ("engine", "tokens"), [(EngineType.TENSORRT_LLM, 4096), (EngineType.TGI, 9000)]
)
def test_others_go_on(engine: EngineType, tokens: int) -> None:
    assert context.taken(engine, SHORT, 9000, {}) == tokens


def test_what_the_model_has_is_taken_by_all() -> None:
    for engine in EngineType:
        assert context.taken(engine, SHORT, 4096, {}) == 4096
