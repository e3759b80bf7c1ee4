"""SGLang's responses API: its store, its streams, what it makes of its input."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from modelserve.api.spec import EngineType
from servelab.engine.core.sequences import Finish, FinishReason
from servelab.engine.replying import Choice
from servelab.engine.text.answers import Words
from servelab.engine.text.lengths import Ending

Hosted = Callable[..., Any]
PATH = "/v1/responses"
BODY = {"model": "llama-8b", "input": "hi", "request_id": "resp_1"}
STORE = "enable-response-store"


def stored(hosted: Hosted) -> Any:
    return hosted(EngineType.SGLANG, STORE)


def get(host: Any, name: str) -> Any:
    """What is kept under a name."""
    return host.ask("GET", f"{PATH}/{name}")


def cancel(host: Any, name: str) -> Any:
    """The answer to a cancellation."""
    return host.ask("POST", f"{PATH}/{name}/cancel")


def end(host: Any, exchange: Any, tokens: int = 2) -> None:
    """Let the last request end."""
    reply = host.replies[-1]
    choice = Choice(reply, Words(1), reply.call.prompts[0], Ending(tokens, FinishReason.LENGTH))
    reply.add([choice])
    reply.open(exchange)
    choice.tokens(tokens)
    choice.finish(Finish("a", FinishReason.LENGTH, 2.0, 0.0, 0.1, 0.5, 2.0, 3, tokens, 0))
    reply.flush()


def events(exchange: Any) -> list[dict[str, Any]]:
    lines = exchange.body.decode().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


@pytest.mark.parametrize("stream", [False, True])
def test_what_was_answered_is_kept(hosted: Hosted, stream: bool) -> None:
    host = stored(hosted)
    exchange = host.ask("POST", PATH, BODY | {"stream": stream})
    end(host, exchange)
    kept = get(host, "resp_1").document
    told = events(exchange)[-1]["response"] if stream else exchange.document
    assert (kept, kept["status"]) == (told, "incomplete")


def test_what_is_not_to_be_kept_is_not(hosted: Hosted) -> None:
    host = stored(hosted)
    end(host, host.ask("POST", PATH, BODY | {"store": False}))
    assert get(host, "resp_1").status == 404


def test_a_conversation_goes_on_from_what_was_kept(hosted: Hosted) -> None:
    host = stored(hosted)
    end(host, host.ask("POST", PATH, BODY))
    body = {"model": "llama-8b", "input": "hi"}
    host.ask("POST", PATH, body)
    host.ask("POST", PATH, body | {"previous_response_id": "resp_1"})
    alone, after = (reply.call.prompts[0].tokens for reply in host.replies[-2:])
    assert after > 2 * alone - 10


def test_a_response_in_the_background_is_told_when_it_is_done(hosted: Hosted) -> None:
    host = stored(hosted)
    exchange = host.ask("POST", PATH, BODY | {"background": True})
    assert (exchange.document["status"], exchange.ended) == ("queued", True)
    assert get(host, "resp_1").document["status"] == "in_progress"
    end(host, host.exchanges[-1])
    assert get(host, "resp_1").document["status"] == "incomplete"


def test_a_response_that_was_cancelled_stays_so(hosted: Hosted) -> None:
    host = stored(hosted)
    host.ask("POST", PATH, BODY | {"background": True})
    assert cancel(host, "resp_1").document["status"] == "cancelled"
    end(host, host.exchanges[-1])
    assert get(host, "resp_1").document["status"] == "cancelled"
    assert cancel(host, "resp_1").document["status"] == "cancelled"


def test_a_background_that_finds_the_queue_full_has_failed(hosted: Hosted) -> None:
    host = hosted(EngineType.SGLANG, STORE, full=True)
    assert host.ask("POST", PATH, BODY | {"background": True}).document["status"] == "queued"
    assert get(host, "resp_1").document["status"] == "failed"


def test_a_full_queue_is_told_in_its_own_shape(hosted: Hosted) -> None:
    host = hosted(EngineType.SGLANG, full=True)
    whole = host.ask("POST", PATH, BODY)
    error = {"message": "503: The request queue is full.", "type": "invalid_request_error"}
    assert (whole.status, whole.document["error"]) == (400, error | {"param": None, "code": 400})
    last = events(host.ask("POST", PATH, BODY | {"stream": True}))[-1]
    assert (last["type"], last["response"]["usage"]["total_tokens"]) == ("response.failed", 0)


def test_a_text_that_might_have_been_a_call_comes_at_the_end(hosted: Hosted) -> None:
    host = hosted(EngineType.SGLANG)
    tools = [{"type": "function", "name": "f"}]
    exchange = host.ask("POST", PATH, BODY | {"stream": True, "tools": tools})
    reply = host.replies[-1]
    ending = Ending(9, FinishReason.LENGTH)
    reply.add([Choice(reply, Words(1), reply.call.prompts[0], ending)])
    reply.open(exchange)
    reply.choices[0].tokens(3)
    reply.flush()
    assert len(events(exchange)) == 2
    host.abort(host.choices)
    assert [event["sequence_number"] for event in events(exchange)] == list(range(11))


@pytest.mark.parametrize(
    "item",
    [
        {"type": "custom_tool_call", "name": "f", "input": "x"},
        {"type": "function_call", "name": "f", "arguments": {"a": 1}},
        {"type": "function_call_output", "output": [{"type": "input_text", "text": "x"}]},
        {"role": "developer", "content": "x"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
    ],
)
def test_items_of_many_kinds_are_part_of_the_conversation(
    hosted: Hosted, item: dict[str, Any]
) -> None:
    host = hosted(EngineType.SGLANG)
    host.ask("POST", PATH, BODY | {"input": [item]})
    assert host.replies[-1].call.prompts[0].tokens > 5
