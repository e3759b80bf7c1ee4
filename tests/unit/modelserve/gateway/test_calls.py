"""Bodies that no model could answer are refused with a sentence, before they wake anything."""

import json

import pytest

from modelserve.gateway import answers, calls

CHAT = "/v1/chat/completions"


@pytest.mark.parametrize(
    ("body", "words", "param"),
    [
        pytest.param(b"", "no valid JSON", None, id="empty"),
        pytest.param(b"{", "no valid JSON", None, id="cut"),
        pytest.param(b"\xff\xfe{", "no valid JSON", None, id="not UTF-8"),
        pytest.param(b"[" * 100_000, "no valid JSON", None, id="too deep"),
        pytest.param(b"[]", "object, not an array", None, id="array"),
        pytest.param(b"null", "object, not null", None, id="null"),
        pytest.param(b"{}", "'model' is missing", "model", id="no model"),
        pytest.param(b'{"model": ""}', "'model' is missing", "model", id="empty model"),
        pytest.param(b'{"model": 1}', "'model' must be a string", "model", id="number"),
        pytest.param(b'{"model": "m"}', "'messages' is missing", "messages", id="no messages"),
        pytest.param(b'{"model": "m", "messages": {}}', "an array", "messages", id="no list"),
        pytest.param(
            b'{"model": "m", "messages": [1], "stream": "yes"}', "a boolean", "stream", id="stream"
        ),
    ],
)
def test_a_body_that_makes_no_sense_is_refused(body: bytes, words: str, param: str | None) -> None:
    with pytest.raises(answers.BadCall, match=words) as caught:
        calls.parse_call(CHAT, body)
    assert caught.value.answer.status == 400
    assert caught.value.answer.param == param


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
def test_another_content_type_is_refused_before_it_wakes_a_model(content_type: str) -> None:
    with pytest.raises(answers.BadCall, match="must be application/json") as caught:
        calls.parse_call(CHAT, b'{"model": "m", "messages": [1]}', content_type)
    assert caught.value.answer.status == 400


def test_text_completions_need_a_prompt() -> None:
    with pytest.raises(answers.BadCall, match="'prompt'"):
        calls.parse_call("/v1/completions", b'{"model": "m"}')


def test_other_calls_need_a_model_only() -> None:
    call = calls.parse_call("/v1/embeddings", b'{"model": "m"}')
    assert (call.model, call.streamed) == ("m", False)


def test_the_body_is_left_alone_when_the_engine_knows_the_name() -> None:
    body = b'{"model":"m",  "stream": true}'
    call = calls.parse_call("/v1/x", body)
    assert call.streamed
    assert call.addressed_to("m").body is body
    assert json.loads(call.addressed_to("other").body) == {"model": "other", "stream": True}
