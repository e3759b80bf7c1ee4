"""Calls of functions in TensorRT-LLM's answers."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from modelserve.api.spec import EngineType

Hosted = Callable[..., Any]
PATH = "/v1/chat/completions"
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"],
        },
    },
}
CHAT: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "hi"}],
    "tools": [TOOL],
}
NAMED = CHAT | {"tool_choice": {"type": "function", "function": {"name": "weather"}}}
ANSWERED = [*CHAT["messages"], {"role": "tool", "content": "rain", "tool_call_id": "c"}]
PARSER, BACKEND = "tool-parser", "guided-decoding-backend"


def parsing(hosted: Hosted) -> Any:
    return hosted(EngineType.TENSORRT_LLM, PARSER)


def naming(hosted: Hosted) -> Any:
    return hosted(EngineType.TENSORRT_LLM, PARSER, BACKEND)


def choices(exchange: Any) -> list[dict[str, Any]]:
    """The choices of a stream's events."""
    lines = exchange.body.decode().splitlines()
    told = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    return [event["choices"][0] for event in told if event["choices"]]


def calls(exchange: Any) -> list[dict[str, Any]]:
    """The parts of calls in a stream."""
    deltas = [choice["delta"] for choice in choices(exchange)]
    return [call for delta in deltas for call in delta.get("tool_calls") or ()]


def test_a_chat_tells_a_call_where_a_parser_finds_it(hosted: Hosted) -> None:
    choice = parsing(hosted).answered(PATH, CHAT).document["choices"][0]
    function = choice["message"]["tool_calls"][0]["function"]
    assert (function["name"], sorted(json.loads(function["arguments"]))) == (
        "weather",
        ["city", "days"],
    )
    assert (choice["message"]["content"], choice["finish_reason"]) == ("", "tool_calls")


@pytest.mark.parametrize(
    "more",
    [
        {"tool_choice": "none"},
        {"messages": ANSWERED},
        {"tools": None},
    ],
)
def test_no_call_is_made_where_none_is_due(hosted: Hosted, more: dict[str, Any]) -> None:
    host = parsing(hosted)
    host.ask("POST", PATH, CHAT | more)
    assert host.replies[-1].call.calling is None


def test_without_a_parser_no_call_is_made(hosted: Hosted) -> None:
    host = hosted(EngineType.TENSORRT_LLM)
    host.ask("POST", PATH, CHAT)
    assert host.replies[-1].call.calling is None


def test_a_call_that_was_cut_off_is_told_as_text(hosted: Hosted) -> None:
    choice = parsing(hosted).answered(PATH, CHAT, most=4).document["choices"][0]
    assert choice["message"]["tool_calls"] == []
    assert choice["message"]["content"].startswith("<tool_call")
    assert choice["finish_reason"] == "length"


def test_a_stream_tells_a_call_in_parts(hosted: Hosted) -> None:
    exchange = parsing(hosted).answered(PATH, CHAT | {"stream": True})
    first, *more = [call["function"] for call in calls(exchange)]
    assert (first["name"], first["arguments"]) == ("weather", "")
    assert sorted(json.loads("".join(call["arguments"] for call in more))) == ["city", "days"]
    assert choices(exchange)[-1]["finish_reason"] == "tool_calls"


def test_a_stream_that_was_cut_off_within_a_call_ends_for_its_length(hosted: Hosted) -> None:
    exchange = parsing(hosted).answered(PATH, CHAT | {"stream": True}, most=1)
    assert (calls(exchange), choices(exchange)[-1]["finish_reason"]) == ([], "length")


def test_the_answer_of_a_function_that_is_named_is_its_arguments(hosted: Hosted) -> None:
    choice = naming(hosted).answered(PATH, NAMED).document["choices"][0]
    function = choice["message"]["tool_calls"][0]["function"]
    assert function["name"] == "weather"
    assert sorted(json.loads(function["arguments"])) == ["city", "days"]


def test_the_arguments_of_a_named_function_are_streamed(hosted: Hosted) -> None:
    told = calls(naming(hosted).answered(PATH, NAMED | {"stream": True}))
    assert [call["function"].get("name") for call in told if call.get("id")] == ["weather"]
    arguments = "".join(call["function"]["arguments"] for call in told)
    assert sorted(json.loads(arguments)) == ["city", "days"]


@pytest.mark.parametrize("options", [(), (PARSER,), (BACKEND,)])
def test_a_function_is_named_only_with_a_parser_and_a_backend(
    hosted: Hosted, options: tuple[str, ...]
) -> None:
    assert hosted(EngineType.TENSORRT_LLM, *options).ask("POST", PATH, NAMED).status == 400
