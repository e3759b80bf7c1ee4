"""What an engine refuses, and with which status, type and parameter."""

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servelab.engine.calls import Served
from servelab.engine.surfaces.vllm import (
    anthropic,
    anthropic_bodies,
    bodies,
    protocol,
    refusals,
    responses,
    responses_bodies,
)

SERVED = Served("m", 8192)
GOOD: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def refusal(body: object, *, raw: bytes | None = None, chat: bool = True) -> refusals.Refusal:
    parse = protocol.parse_chat if chat else protocol.parse_completion
    with pytest.raises(refusals.Refusal) as caught:
        parse(raw if raw is not None else json.dumps(body).encode(), "application/json", SERVED)
    return caught.value


@pytest.mark.parametrize(
    ("change", "status", "kind", "param"),
    [
        ({"model": "other"}, 404, "NotFoundError", "model"),
        ({"messages": "hi"}, 400, "Bad Request", "body.messages"),
        ({"max_tokens": 5.5}, 400, "Bad Request", "body.max_tokens"),
        ({"max_tokens": -1}, 400, "BadRequestError", "max_tokens"),
        ({"max_tokens": 8193}, 400, "BadRequestError", "max_tokens"),
        ({"max_completion_tokens": 9000}, 400, "BadRequestError", "max_completion_tokens"),
        ({"n": -1}, 400, "BadRequestError", None),
        ({"n": 16_385}, 400, "BadRequestError", None),
        ({"n": 2, "temperature": 0}, 400, "BadRequestError", None),
        ({"stop": ["a"] * 5}, 400, "Bad Request", "body.stop"),
        ({"stop": [""]}, 400, "BadRequestError", None),
        ({"top_logprobs": 2}, 400, "BadRequestError", "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, 400, "BadRequestError", "logprobs"),
        ({"prompt_logprobs": "x"}, 400, "BadRequestError", "prompt_logprobs"),
        ({"logit_bias": {"a": 1}}, 400, "BadRequestError", "logit_bias"),
        ({"logit_bias": {"99999999": 1}}, 400, "BadRequestError", "logit_bias"),
        ({"tools": []}, 400, "BadRequestError", "tools"),
        ({"tool_choice": "auto"}, 400, "BadRequestError", "tool_choice"),
        (
            {"tools": [{}], "tool_choice": {"function": {"name": "f"}}},
            500,
            "InternalServerError",
            None,
        ),
        ({"messages": 5}, 400, "BadRequestError", None),
        ({"response_format": {"type": "json_schema"}}, 400, "BadRequestError", "response_format"),
        ({"temperature": 3}, 400, "BadRequestError", "temperature"),
        ({"top_p": 0}, 400, "BadRequestError", "top_p"),
        ({"stream_options": {"include_usage": True}}, 400, "BadRequestError", "stream_options"),
        ({"max_tokens": 5, "min_tokens": 9}, 400, "BadRequestError", None),
        ({"response_format": {"type": "yaml"}}, 400, "Bad Request", "body.response_format.type"),
    ],
)
def test_a_bad_chat_request_is_refused_as_vllm_does(
    change: dict[str, Any], status: int, kind: str, param: str | None
) -> None:
    refused = refusal(GOOD | change)
    assert (refused.status, refused.kind, refused.param) == (status, kind, param)


@pytest.mark.parametrize(
    ("raw", "param"),
    [(b"{not json", "body.1"), (b"[]", "body"), (b"null", "body"), (b"", "body"), (b"\xff", None)],
)
def test_a_body_that_is_no_object_is_refused(raw: bytes, param: str | None) -> None:
    refused = refusal(None, raw=raw)
    assert (refused.status, refused.param) == (400, param)


def test_prompts_times_answers_are_bounded() -> None:
    body = {"model": "m", "prompt": ["a"] * 1000, "n": 100}
    assert refusal(body, chat=False).status == 400


@pytest.mark.parametrize("prompt", ["", None, [], [999_999]])
def test_a_prompt_of_nothing_or_of_unknown_ids_is_refused(prompt: object) -> None:
    assert refusal({"model": "m", "prompt": prompt}, chat=False).status == 400


@pytest.mark.parametrize(
    ("prompt", "tokens"),
    [
        ("hello you", [2]),
        ([40, 41, 42], [3]),
        (["hello", "you too"], [1, 2]),
        ([[1], [2, 3]], [1, 2]),
    ],
)
def test_prompts_are_texts_or_token_ids_or_lists_of_these(
    prompt: object, tokens: list[int]
) -> None:
    raw = json.dumps({"prompt": prompt}).encode()
    call = protocol.parse_completion(raw, "application/json", SERVED)
    assert [each.tokens for each in call.prompts] == tokens


@pytest.mark.parametrize(
    ("characters", "param"), [(17, "input_tokens"), (128, "input_tokens"), (129, "input_text")]
)
def test_a_text_that_must_be_too_long_is_refused_unread(characters: int, param: str) -> None:
    refused = refusal({"prompt": "a" * characters * SERVED.max_model_tokens}, chat=False)
    assert refused.param == param


def test_max_completion_tokens_wins_over_max_tokens() -> None:
    raw = json.dumps(GOOD | {"max_tokens": 5, "max_completion_tokens": 2}).encode()
    assert protocol.parse_chat(raw, "application/json", SERVED).max_tokens == 2


def test_content_parts_count_as_their_text() -> None:
    parts = [{"type": "text", "text": "hello"}, {"type": "text", "text": "you"}]
    raw = json.dumps({"messages": [{"role": "user", "content": parts}]}).encode()
    assert protocol.parse_chat(raw, "application/json", SERVED).prompts[0].tokens == 11


def test_a_missing_model_means_the_one_that_is_served() -> None:
    raw = json.dumps({"messages": GOOD["messages"]}).encode()
    assert protocol.parse_chat(raw, "application/json", SERVED).n == 1


def test_a_form_is_refused() -> None:
    with pytest.raises(refusals.Refusal, match="application/json"):
        protocol.parse_chat(b"a=b", "application/x-www-form-urlencoded", SERVED)


def test_a_message_that_fits_no_role_is_told_by_role() -> None:
    refused = refusal(GOOD | {"messages": [{"role": "user", "content": 5}]})
    assert refused.param == "body.messages.0.ChatCompletionDeveloperMessageParam.content"


def test_an_answer_that_would_not_fit_is_as_long_as_fits() -> None:
    raw = json.dumps(GOOD | {"max_tokens": 8192}).encode()
    call = protocol.parse_chat(raw, "application/json", SERVED)
    (prompt,) = call.prompts
    assert call.limit_tokens(prompt, SERVED) == 8192 - prompt.tokens


def test_what_the_engine_refuses_of_a_stream_comes_late() -> None:
    raw = json.dumps(GOOD | {"stream": True, "logit_bias": {"99999999": 1}}).encode()
    late = protocol.parse_chat(raw, "application/json", SERVED).late
    assert isinstance(late, refusals.Refusal)
    assert late.param == "logit_bias"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(
    field=st.sampled_from(sorted({*bodies.ChatRequest.model_fields, "structured_outputs"})),
    value=json_values,
)
@settings(max_examples=300, deadline=None)
def test_any_value_of_a_field_of_a_chat_is_taken_or_refused(field: str, value: object) -> None:
    taken_or_refused(protocol.parse_chat, GOOD | {field: value})


@given(field=st.sampled_from(sorted(bodies.CompletionRequest.model_fields)), value=json_values)
@settings(max_examples=300, deadline=None)
def test_any_value_of_a_field_of_a_completion_is_taken_or_refused(
    field: str, value: object
) -> None:
    taken_or_refused(protocol.parse_completion, {"model": "m", "prompt": "hi"} | {field: value})


@given(
    field=st.sampled_from(sorted(anthropic_bodies.MessagesRequest.model_fields)), value=json_values
)
@settings(max_examples=200, deadline=None)
def test_any_value_of_a_field_of_messages_is_taken_or_refused(field: str, value: object) -> None:
    taken_or_refused(anthropic.parse, GOOD | {"max_tokens": 5} | {field: value})


@given(
    field=st.sampled_from(sorted(responses_bodies.ResponsesRequest.model_fields)), value=json_values
)
@settings(max_examples=200, deadline=None)
def test_any_value_of_a_field_of_responses_is_taken_or_refused(field: str, value: object) -> None:
    taken_or_refused(responses.parse, {"input": "hi"} | {field: value})


def taken_or_refused(parse: Callable[[bytes, str, Served], object], body: object) -> None:
    with contextlib.suppress(refusals.Refusal):
        parse(json.dumps(body).encode(), "application/json", SERVED)
