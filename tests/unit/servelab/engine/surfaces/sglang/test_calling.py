"""Calls of functions in SGLang's answers."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from modelserve.api.spec import EngineType
from servelab.engine.calls import Calling, Served
from servelab.engine.surfaces import called
from servelab.engine.surfaces.sglang import calling
from servelab.engine.text import template

Hosted = Callable[..., Any]
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
}
KNOWN = [template.Function("weather", None, SCHEMA), template.Function("time")]
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}], "tools": [TOOL]}
RESPONSE = {"model": "llama-8b", "input": "hi", "tools": [TOOL["function"] | {"type": "function"}]}
ANSWERED = [
    *CHAT["messages"],
    {"role": "assistant", "tool_calls": [{"function": {"name": "weather", "arguments": {}}}]},
    {"role": "tool", "content": "rain"},
]
PLAIN, PARSING = Served("m", 99), Served("m", 99, (("tool-call-parser", "hermes"),))


def written(choice: str, served: Served) -> tuple[Calling | None, str]:
    """Whether an answer is a call, and its text."""
    told, write = calling.wanted(choice, KNOWN, served, answered=False, formed=False)
    return told, "" if write is None else write(random.Random(1))


def test_a_call_is_made_without_being_asked_for_only_where_a_parser_finds_it() -> None:
    assert written("auto", PLAIN) == (None, "")
    told, text = written("auto", PARSING)
    assert (told, text.startswith("<tool_call>")) == (Calling.AUTO, True)


@pytest.mark.parametrize("choice", ["required", ":weather"])
def test_a_call_that_must_be_is_an_array_where_there_is_no_parser(choice: str) -> None:
    made = json.loads(written(choice, PLAIN)[1])
    assert [sorted(call) for call in made] == [["name", "parameters"]]
    assert called.found(json.dumps(made)) == (
        made[0]["name"],
        json.dumps(made[0]["parameters"], ensure_ascii=False),
    )


def test_a_function_that_is_named_is_called() -> None:
    assert called.found(written(":time", PARSING)[1]) == ("time", "{}")


@pytest.mark.parametrize("text", ["words", "<tool_call>\n{", "[1]", "[]", "{}", '[{"name": 1}]'])
def test_a_text_that_is_no_call_is_none(text: str) -> None:
    assert called.found(text) is None


def test_a_chat_tells_a_call(hosted: Hosted) -> None:
    host = hosted(EngineType.SGLANG, "tool-call-parser")
    choice = host.answered("/v1/chat/completions", CHAT).document["choices"][0]
    call = choice["message"]["tool_calls"][0]
    assert (choice["message"]["content"], call["function"]["name"]) == ("", "weather")
    assert sorted(json.loads(call["function"]["arguments"])) == ["city", "days"]
    assert (choice["finish_reason"], choice["matched_stop"]) == ("tool_calls", None)


def test_a_stream_tells_its_name_and_then_its_arguments(hosted: Hosted) -> None:
    host = hosted(EngineType.SGLANG, "tool-call-parser")
    events = host.answered("/v1/chat/completions", CHAT | {"stream": True}).events
    deltas = [event["choices"][0]["delta"] for event in events[:-1]]
    calls = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert [call["function"]["name"] for call in calls] == ["weather"] + [None] * (len(calls) - 1)
    arguments = "".join(call["function"]["arguments"] for call in calls)
    assert sorted(json.loads(arguments)) == ["city", "days"]
    assert (deltas[-2]["content"], events[-2]["choices"][0]["finish_reason"]) == (
        *("\n", "tool_calls"),
    )


def test_a_call_that_is_cut_is_text_and_in_a_stream_a_part_of_one(hosted: Hosted) -> None:
    host = hosted(EngineType.SGLANG, "tool-call-parser")
    whole = host.answered("/v1/chat/completions", CHAT, 12).document["choices"][0]
    assert ("tool_calls" in whole["message"], whole["finish_reason"]) == (False, "length")
    events = host.answered("/v1/chat/completions", CHAT | {"stream": True}, 12).events
    assert events[-2]["choices"][0]["finish_reason"] == "length"


def test_words_follow_a_call_that_was_answered(hosted: Hosted) -> None:
    host = hosted(EngineType.SGLANG, "tool-call-parser")
    body = CHAT | {"messages": ANSWERED, "stream": True}
    events = host.answered("/v1/chat/completions", body).events
    assert events[1]["choices"][0]["delta"]["role"] is None
    assert (events[1]["usage"], "usage" in events[0]) == (None, False)


def test_tools_are_part_of_the_prompt_if_they_may_be_called(hosted: Hosted) -> None:
    host = hosted(EngineType.SGLANG)
    for choice in ("auto", "none"):
        host.ask("POST", "/v1/chat/completions", CHAT | {"tool_choice": choice})
    told, untold = (reply.call.prompts[0].tokens for reply in host.replies)
    assert told > untold


@pytest.mark.parametrize("parser", [(), ("tool-call-parser",)])
def test_the_responses_api_reads_a_call_that_must_be(
    hosted: Hosted, parser: tuple[str, ...]
) -> None:
    host = hosted(EngineType.SGLANG, *parser)
    body = RESPONSE | {"tool_choice": "required"}
    item = host.answered("/v1/responses", body).document["output"][0]
    assert (item["type"], item["name"]) == ("function_call", "weather")


def test_the_responses_api_streams_a_call(hosted: Hosted) -> None:
    host = hosted(EngineType.SGLANG, "tool-call-parser")
    blocks = host.answered("/v1/responses", RESPONSE | {"stream": True}).body.decode()
    events = [json.loads(line[6:]) for line in blocks.splitlines() if line.startswith("data: ")]
    kinds = [event["type"].removeprefix("response.") for event in events]
    assert kinds[:3] == ["created", "in_progress", "output_item.added"]
    assert kinds[-3:] == ["function_call_arguments.done", "output_item.done", "completed"]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    deltas = "".join(event.get("delta", "") for event in events)
    assert deltas == events[-1]["response"]["output"][0]["arguments"]
