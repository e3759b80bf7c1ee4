"""Functions that a chat may call. TGI has the model write JSON, and reads the call back from it."""

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from servelab.engine.surfaces.tgi import refusals, tokens
from servelab.engine.text import instances, writing

Tool = Mapping[str, Any]

NONE = "none"
# What the model may call where it is free to call nothing; it then answers anew, without functions.
NO_TOOL: Tool = {
    "type": "function",
    "function": {
        "name": "no_tool",
        "description": "Open ended response with no specific tool selected",
        "arguments": {"type": "object"},
    },
}
# Choices that are no function's name.
CHOICES = (None, "auto", NONE, "required")


def used(body: Mapping[str, Any]) -> Sequence[Tool]:
    """The functions that may be called; none where the chat goes without. Raises Refusal."""
    tools, choice = body["tools"], body["tool_choice"]
    if tools is None or choice == NONE:
        return ()
    name = choice["function"]["name"] if isinstance(choice, dict) else choice
    if name in CHOICES:
        return list(tools)
    named = [tool for tool in tools if tool["function"]["name"] == name]
    if not named:
        raise refusals.tool(f"Tool with name {name} not found")
    return named


def is_free(body: Mapping[str, Any]) -> bool:
    """Whether the model may call nothing."""
    return body["tool_choice"] in (None, "auto")


def prompted(body: Mapping[str, Any], tools: Sequence[Tool]) -> Sequence[Tool]:
    """The functions that the prompt tells of."""
    return (*tools, NO_TOOL) if body["tools"] is not None and is_free(body) else tools


def calls(body: Mapping[str, Any], tools: Sequence[Tool]) -> bool:
    """Whether the model calls one, where it may: not once a function has answered."""
    answered = bool(body["messages"]) and body["messages"][-1]["role"] == "tool"
    return bool(tools) and not (is_free(body) and answered)


def declines(body: Mapping[str, Any], tools: Sequence[Tool]) -> bool:
    """Whether the model is free, and says that it calls none: a function has answered."""
    return bool(tools) and is_free(body) and not calls(body, tools)


def declined(rng: random.Random) -> str:
    """How it says so."""
    return json.dumps({"function": {"_name": NO_TOOL["function"]["name"]}})


def says_no(text: str) -> bool:
    """Whether a text, whole or cut off, says so."""
    call = _read(text.rstrip(" \t\r\n,}") + "}}")
    return call is not None and call[0] == NO_TOOL["function"]["name"]


def written(tools: Sequence[Tool]) -> writing.Write:
    """A call of one of the functions, as the grammar asks for it."""

    def write(rng: random.Random) -> str:
        function = rng.choice(tools)["function"]
        schema = function["arguments"] if isinstance(function["arguments"], dict) else {}
        arguments = instances.instance({"type": "object", **schema}, rng)
        call = {"function": {"_name": function["name"], **arguments}}
        return json.dumps(call, ensure_ascii=False)

    return write


def next_id(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """One more than the calls so far; None where their ids are no numbers."""
    ids = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    if not all(each.isdecimal() for each in ids):
        return None
    return str(max((int(each) + 1 for each in ids), default=0))


def called(text: str) -> dict[str, Any]:
    """The call that a whole answer holds. Raises Refusal."""
    call = _read(text)
    if call is None:
        raise refusals.tool(
            f"Failed to parse generated text: EOF while parsing a value at line 1 column "
            f"{len(text)} {json.dumps(text, ensure_ascii=False)}"
        )
    name, arguments = call
    told = tokens.compact(arguments).decode()
    function = {"description": None, "name": name, "arguments": told}
    return {"id": "0", "type": "function", "function": function}


class Deltas:
    """Reads a call off the tokens as they come."""

    def __init__(self, call_id: str) -> None:
        self._id = call_id
        self._text = ""
        self._begun = False

    def after(self, text: str) -> dict[str, Any] | None:
        """What is told of one more token; None where that is nothing."""
        self._text += text
        if not self._begun:
            call = _read(self._text.rstrip(" \t\r\n,}") + "}}")
            if call is None:
                return None
            self._begun = True
            return self._delta(call[0], "{")
        if _read(self._text) is not None:
            self._begun = False
            text = text.rstrip().removesuffix("}")
        return self._delta(None, text)

    def _delta(self, name: str | None, arguments: str) -> dict[str, Any]:
        call = {
            "index": 0,
            "id": self._id,
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        return {"role": "assistant", "tool_calls": [call]}


def _read(text: str) -> tuple[str, dict[str, Any]] | None:
    try:
        function = dict(json.loads(text)["function"])
        name = function.pop("_name")
    except (ValueError, KeyError, TypeError):
        return None
    return (name, function) if isinstance(name, str) else None
