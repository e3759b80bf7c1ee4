"""What an engine refuses, and with which status, type and parameter."""

import json
from typing import Any

import pytest

from servelab.engine import protocol, refusals

GOOD: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def refusal(body: object, *, raw: bytes | None = None, chat: bool = True) -> refusals.Refusal:
    parse = protocol.parse_chat if chat else protocol.parse_completion
    with pytest.raises(refusals.Refusal) as caught:
        parse(raw if raw is not None else json.dumps(body).encode(), "application/json", "m")
    return caught.value


@pytest.mark.parametrize(
    ("change", "status", "kind", "param"),
    [
        ({"model": "other"}, 404, "NotFoundError", "model"),
        ({"messages": "hi"}, 400, "Bad Request", "body.messages"),
        ({"max_tokens": 5.5}, 400, "Bad Request", "body.max_tokens"),
        ({"max_tokens": -1}, 400, "BadRequestError", "max_tokens"),
        ({"n": -1}, 400, "BadRequestError", None),
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
    [(b"{not json", "body.1"), (b"[]", "body"), (b"null", "body"), (b"", "body.0")],
)
def test_a_body_that_is_no_object_is_refused(raw: bytes, param: str) -> None:
    refused = refusal(None, raw=raw)
    assert (refused.status, refused.param) == (400, param)


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
    call = protocol.parse_completion(raw, "application/json", "m")
    assert [each.tokens for each in call.prompts] == tokens


def test_max_completion_tokens_wins_over_max_tokens() -> None:
    raw = json.dumps(GOOD | {"max_tokens": 5, "max_completion_tokens": 2}).encode()
    assert protocol.parse_chat(raw, "application/json", "m").max_tokens == 2


def test_content_parts_count_as_their_text() -> None:
    parts = [{"type": "text", "text": "hello"}, {"type": "text", "text": "you"}]
    raw = json.dumps({"messages": [{"role": "user", "content": parts}]}).encode()
    assert protocol.parse_chat(raw, "application/json", "m").prompts[0].tokens == 12


def test_a_missing_model_means_the_one_that_is_served() -> None:
    raw = json.dumps({"messages": GOOD["messages"]}).encode()
    assert protocol.parse_chat(raw, "application/json", "m").n == 1


def test_a_form_is_refused() -> None:
    with pytest.raises(refusals.Refusal, match="application/json"):
        protocol.parse_chat(b"a=b", "application/x-www-form-urlencoded", "m")
