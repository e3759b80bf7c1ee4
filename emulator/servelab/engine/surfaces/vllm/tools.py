"""Calls of functions in an answer, as vLLM's parsers find them in its text."""

import random
import string
import uuid
from collections.abc import Sequence
from typing import Any

from servelab.engine.calls import Call, Calling, Served
from servelab.engine.replying import Choice
from servelab.engine.surfaces.vllm.chunks import Head
from servelab.engine.text import answers, dialects

# Parsers whose calls have names of their own kind.
_PLACED = frozenset({"kimi_k2", "kimi_k3"})
_SHORT, _SHORT_LETTERS = frozenset({"mistral"}), 9
_NUMBERED = frozenset({"xlam", "hunyuan_a13b"})


def parser(served: Served) -> str:
    """The parser that looks for calls; empty if there is none."""
    options = dict(served.options)
    return options.get("tool-call-parser", "") if served.has("enable-auto-tool-choice") else ""


def call_id(head: Head, index: int, made: dialects.Written) -> str:
    """The name of the call that choice ``index`` makes."""
    digits = uuid.uuid5(uuid.NAMESPACE_OID, f"{head.id}/{head.created}/{index}").hex[:16]
    if head.tools in _PLACED:
        return f"functions.{made.name}:0"
    if head.tools in _SHORT:
        letters = string.ascii_letters + string.digits
        return "".join(random.Random(digits).choices(letters, k=_SHORT_LETTERS))
    return f"call_0_{digits}" if head.tools in _NUMBERED else f"chatcmpl-tool-{digits}"


def end_reason(call: Call, reason: str, *, called: bool) -> str:
    """The reason of an end: a function that was named is not told as a call."""
    if called and reason == "stop" and call.calling is not Calling.NAMED:
        return "tool_calls"
    return reason


def written(choice: Choice) -> dialects.Written | None:
    """The call that a choice's text is, if it is one."""
    said = choice.answer.said
    source = said.source if isinstance(said, answers.Written) else None
    return source if isinstance(source, dialects.Written) else None


def found(choice: Choice, text: str) -> dialects.Written | None:
    """The call in what a choice has said, if it is all there."""
    made = written(choice)
    return made if made is not None and text.startswith(made.rstrip()) else None


def message(
    head: Head, call: Call, choice: Choice, text: str
) -> tuple[str | None, list[dict[str, Any]]]:
    """Content and calls of a choice's message, of what it has said."""
    made = found(choice, text)
    if made is None:
        return text, []
    function = {"name": made.name, "arguments": made.arguments}
    told = {"id": call_id(head, choice.index, made), "type": "function", "function": function}
    return None if call.calling is Calling.AUTO else "", [told]


class Deltas:
    """The call that one choice makes, told as its text comes."""

    def __init__(self, head: Head, choice: Choice) -> None:
        made = written(choice)
        assert made is not None
        self.made = made
        self._id = call_id(head, choice.index, made)
        self._parts = list(made.parts)
        self._left = ""  # of the text, what belongs to parts that are not whole
        self.begun = False

    def after(self, text: str) -> Sequence[dict[str, Any]]:
        """What can be told once this much more of the text is there; a text for what is none."""
        told: list[dict[str, Any]] = []
        self._left += text
        while self._parts:
            part = self._parts[0]
            if part.verbatim and len(self._left) < len(part.text):
                told += self._arguments(self._left)
                self._parts[0] = part._replace(text=part.text[len(self._left) :])
                self._left = ""
                break
            if len(self._left) < len(part.text):
                break
            del self._parts[0]
            self._left = self._left[len(part.text) :]
            told += self._whole(part)
        return told

    def _whole(self, part: dialects.Part) -> Sequence[dict[str, Any]]:
        if part.names:
            self.begun = True
            function = {"name": self.made.name}
            function |= {"arguments": part.arguments} if part.arguments else {}
            return [{"id": self._id, "type": "function", "index": 0, "function": function}]
        return self._arguments(part.text if part.verbatim else part.arguments)

    @staticmethod
    def _arguments(more: str) -> list[dict[str, Any]]:
        return [{"index": 0, "function": {"arguments": more}}] if more else []
