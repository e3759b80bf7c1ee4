"""TensorRT-LLM's responses API: its store, its streams, what it makes of its input."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from modelserve.api.spec import EngineType
from servelab.engine.core.sequences import FinishReason
from servelab.engine.surfaces.tensorrt_llm import responding
from servelab.engine.text.answers import Words

Hosted = Callable[..., Any]
ENGINE = EngineType.TENSORRT_LLM
PATH = "/v1/responses"
BODY = {"model": "m", "input": "hi", "request_id": "resp_1"}
TOOLS = [{"type": "function", "name": "weather", "parameters": {"type": "object"}}]


def get(host: Any, name: str) -> Any:
    """What is kept under a name."""
    return host.ask("GET", f"{PATH}/{name}")


def end(host: Any, exchange: Any, reason: FinishReason = FinishReason.STOP) -> None:
    """Let the last request end, with a text of words unless it is to be of a kind."""
    call = host.replies[-1].call
    answer = call.answer(1) if call.write else Words(1)
    host.tell(exchange, answer, answer.tokens or 2, reason)


def respond(host: Any, reason: FinishReason = FinishReason.STOP, **more: Any) -> Any:
    """An exchange that has ended."""
    exchange = host.ask("POST", PATH, BODY | more)
    end(host, exchange, reason)
    return exchange


def events(exchange: Any) -> list[dict[str, Any]]:
    lines = exchange.body.decode().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]


@pytest.mark.parametrize(
    ("reason", "status"),
    [(FinishReason.STOP, "completed"), (FinishReason.LENGTH, "incomplete")],
)
def test_a_response_says_whether_it_came_to_its_end(
    hosted: Hosted, reason: FinishReason, status: str
) -> None:
    assert respond(hosted(ENGINE), reason).document["status"] == status


def test_what_was_answered_is_kept_until_it_is_deleted(hosted: Hosted) -> None:
    host = hosted(ENGINE)
    told = respond(host).document
    assert get(host, "resp_1").document == told
    assert host.ask("DELETE", f"{PATH}/resp_1").document["deleted"] is True
    assert get(host, "resp_1").status == 404


def test_what_is_not_to_be_kept_is_not(hosted: Hosted) -> None:
    host = hosted(ENGINE)
    respond(host, store=False)
    assert get(host, "resp_1").status == 404


def test_a_name_of_another_kind_is_refused(hosted: Hosted) -> None:
    assert get(hosted(ENGINE), "r1").status == 400


def test_the_oldest_response_makes_room(hosted: Hosted) -> None:
    host = hosted(ENGINE)
    for number in range(responding.MOST_KEPT + 1):
        respond(host, request_id=f"resp_{number}")
    assert (get(host, "resp_0").status, get(host, "resp_1").status) == (404, 200)


def test_a_conversation_goes_on_from_what_was_kept(hosted: Hosted) -> None:
    host = hosted(ENGINE)
    respond(host)
    host.ask("POST", PATH, BODY | {"previous_response_id": "resp_1"})
    alone, after = (reply.call.prompts[0].tokens for reply in host.replies[-2:])
    assert after > alone


def test_a_stream_calls_itself_completed_even_where_it_is_not(hosted: Hosted) -> None:
    last = events(respond(hosted(ENGINE), FinishReason.LENGTH, stream=True))[-1]
    assert (last["type"], last["response"]["status"]) == ("response.completed", "incomplete")


def test_a_streams_events_are_numbered_and_its_text_is_the_whole(hosted: Hosted) -> None:
    host = hosted(ENGINE)
    told = events(respond(host, stream=True))
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    text = "".join(e["delta"] for e in told if e["type"] == "response.output_text.delta")
    kept = get(host, "resp_1").document["output"][0]["content"][0]["text"]
    assert text.strip() == kept


def test_a_call_is_an_item_of_its_own(hosted: Hosted) -> None:
    host = hosted(ENGINE, "tool-parser")
    item = respond(host, tools=TOOLS).document["output"][0]
    assert (item["type"], item["name"]) == ("function_call", "weather")


def test_a_stream_tells_a_call_at_its_end(hosted: Hosted) -> None:
    told = events(respond(hosted(ENGINE, "tool-parser"), tools=TOOLS, stream=True))
    assert [event["type"].removeprefix("response.") for event in told] == [
        "created",
        "in_progress",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    assert (
        told[3]["delta"] == told[4]["arguments"] == told[-1]["response"]["output"][0]["arguments"]
    )


@pytest.mark.parametrize(
    "item",
    [{"type": "image"}, {"type": "message"}, {"type": "message", "content": []}, {"role": 1}],
)
def test_an_item_that_cannot_be_read_is_refused(hosted: Hosted, item: dict[str, Any]) -> None:
    assert hosted(ENGINE).ask("POST", PATH, BODY | {"input": [item]}).status == 400


def test_a_function_without_a_name_is_refused(hosted: Hosted) -> None:
    host = hosted(ENGINE)
    assert host.ask("POST", PATH, BODY | {"tools": [{"type": "function"}]}).status == 400
