"""Calls of functions, as TGI reads them off the model's JSON."""

import random
from typing import Any

import pytest

from servelab.engine.surfaces.tgi import tools
from servelab.engine.surfaces.tgi.refusals import Refusal

WEATHER: tools.Tool = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": None,
        "arguments": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"],
        },
    },
}
# The tokens of the router's own test (router/src/chat.rs, test_chat_stream_tool_get_weather).
BEFORE = ('{"', "function", '":', ' {"', "_", "name", '":', ' "', "get", "_current", "_weather")
AFTER = (
    *('",', ' "', "location", '":', ' "', "San", " Francisco", ",", " CA", '",'),
    *(' "', "format", '":', ' "', "c", "elsius", '"}}'),
)


def body(**fields: Any) -> dict[str, Any]:
    return {"tools": [WEATHER], "tool_choice": None, "messages": [{"role": "user"}], **fields}


def test_a_call_is_told_as_the_routers_own_test_has_it() -> None:
    deltas = tools.Deltas("0")
    assert not any(deltas.after(text) for text in BEFORE)
    told = [deltas.after(text) for text in AFTER]
    calls = [delta["tool_calls"][0] for delta in told if delta is not None]
    assert len(calls) == len(AFTER)
    assert [call["function"]["name"] for call in calls] == ["get_current_weather"] + [None] * 16
    arguments = "".join(call["function"]["arguments"] for call in calls)
    assert arguments == '{ "location": "San Francisco, CA", "format": "celsius"}'
    assert {call["id"] for call in calls} == {"0"}


def test_what_is_written_reads_back_as_a_call() -> None:
    call = tools.called(tools.written([WEATHER])(random.Random(0)))
    assert call["function"]["name"] == "get_weather"
    assert call["function"]["arguments"].startswith('{"city":"')


def test_a_call_that_was_cut_off_cannot_be_read() -> None:
    with pytest.raises(Refusal, match="Tool error: Failed to parse generated text"):
        tools.called('{"function": {"_na')


@pytest.mark.parametrize(
    ("choice", "role", "expected"),
    [
        (None, "user", True),
        ("auto", "tool", False),
        ("required", "tool", True),
        ("none", "user", False),
        ({"function": {"name": "get_weather"}}, "tool", True),
    ],
)
def test_a_function_is_called_unless_one_has_answered(
    choice: object, role: str, expected: bool
) -> None:
    asked = body(tool_choice=choice, messages=[{"role": role}])
    assert tools.calls(asked, tools.used(asked)) is expected


def test_who_may_call_nothing_is_told_so() -> None:
    names = [tool["function"]["name"] for tool in tools.prompted(body(), [WEATHER])]
    assert names == ["get_weather", "no_tool"]


@pytest.mark.parametrize(("ids", "expected"), [((), "0"), (("0", "4"), "5"), (("call_x",), None)])
def test_ids_of_calls_go_on(ids: tuple[str, ...], expected: str | None) -> None:
    messages = [{"tool_calls": [{"id": each}]} for each in ids]
    assert tools.next_id(messages) == expected
