"""Calls of functions in an answer, as vLLM's Hermes parser finds them in its text."""

import json
import uuid
from collections.abc import Sequence
from typing import Any

from servelab.engine.calls import Call, Calling
from servelab.engine.replying import Choice
from servelab.engine.surfaces.vllm.chunks import Head
from servelab.engine.text import writing

_NAME = '{"name": '
_ARGUMENTS = ', "arguments": '


def call_id(head: Head, index: int) -> str:
    """The name of the call that choice ``index`` makes."""
    digits = uuid.uuid5(uuid.NAMESPACE_OID, f"{head.id}/{head.created}/{index}").hex
    return f"chatcmpl-tool-{digits}"


def end_reason(call: Call, reason: str, *, called: bool) -> str:
    """The reason of an end: a function that was named is not told as a call."""
    if called and reason == "stop" and call.calling is not Calling.NAMED:
        return "tool_calls"
    return reason


def found(text: str) -> tuple[str, str] | None:
    """Name and arguments of the call in a whole text, if there is one that can be read."""
    body = text.removeprefix(writing.CALL_START)
    if body == text:
        return None
    try:
        made = json.loads(body.partition("</tool_call>")[0])
        return made["name"], json.dumps(made["arguments"], ensure_ascii=False)
    except (ValueError, KeyError, TypeError):
        return None


def message(head: Head, call: Call, choice: Choice) -> tuple[str | None, list[dict[str, Any]]]:
    """Content and calls of a choice's message."""
    made = found(choice.text)
    if made is None:
        return choice.text, []
    name, arguments = made
    function = {"name": name, "arguments": arguments}
    told = {"id": call_id(head, choice.index), "type": "function", "function": function}
    return None if call.calling is Calling.AUTO else "", [told]


class Deltas:
    """The call that one choice makes, told as its text comes."""

    def __init__(self, head: Head, choice: Choice) -> None:
        text = choice.answer.text(choice.answer.tokens or 0)
        start = len(writing.CALL_START) + len(_NAME)
        self._name, length = json.JSONDecoder().raw_decode(text[start:])
        self._named_at = start + length
        self._start = self._named_at + len(_ARGUMENTS)
        self._end = len(text) - len("}" + writing.CALL_END)
        self._text = text
        self._id = call_id(head, choice.index)
        self._place = 0
        self.begun = False

    def after(self, text: str) -> Sequence[dict[str, Any]]:
        """What can be told once this much more of the text is there."""
        before, self._place = self._place, self._place + len(text)
        told: list[dict[str, Any]] = []
        if self._place >= self._named_at and not self.begun:
            self.begun = True
            function = {"name": self._name}
            told.append({"id": self._id, "type": "function", "index": 0, "function": function})
        arguments = self._text[max(before, self._start) : min(self._place, self._end)]
        if arguments:
            told.append({"index": 0, "function": {"arguments": arguments}})
        return told
