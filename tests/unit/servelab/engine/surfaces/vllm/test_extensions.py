"""Fields that only vLLM has."""

import json
from typing import Any

import pytest

from servelab.engine.calls import Call, Served
from servelab.engine.surfaces.vllm import protocol, refusals

SERVED = Served("m", 64)


def completion(served: Served = SERVED, **fields: Any) -> Call:
    body = {"prompt": list(range(10, 40)), "max_tokens": 4} | fields
    return protocol.parse_completion(json.dumps(body).encode(), "application/json", served)


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"truncate_prompt_tokens": 3}, [37, 38, 39]),
        ({"truncate_prompt_tokens": 3, "truncation_side": "right"}, [10, 11, 12]),
        ({"truncate_prompt_tokens": -1, "prompt": [7] * 100}, [7] * 63),
        ({"truncate_prompt_tokens": 60}, list(range(10, 40))),
    ],
    ids=["the end", "the beginning", "with room for an answer", "all"],
)
def test_a_prompt_is_cut(fields: dict[str, Any], kept: list[int]) -> None:
    assert list(completion(**fields).prompts[0].ids) == kept


def test_thoughts_have_a_budget_only_where_a_parser_finds_them() -> None:
    with pytest.raises(refusals.Refusal, match="reasoning-parser"):
        completion(thinking_token_budget=5)
    thinking = Served("m", 64, (("reasoning-parser", "deepseek_r1"),))
    assert completion(thinking, thinking_token_budget=5).late is None


def test_a_stream_that_the_engine_refuses_is_refused_late() -> None:
    assert completion(bad_words=["  "], stream=True).late is not None


def test_errors_are_told_in_the_order_of_the_fields() -> None:
    with pytest.raises(refusals.Refusal) as caught:
        completion(temperature="x", stop=1, n="y")
    assert caught.value.param == "body.n"
