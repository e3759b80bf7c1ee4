"""Answers in the shape of Anthropic's messages API."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from servelab.engine.calls import Call
from servelab.engine.exchange import Response
from servelab.engine.replying import Choice, Reply, StreamedReply, WholeReply
from servelab.engine.surfaces import fastapi
from servelab.engine.surfaces.vllm import chunks, replies, tools


def stop_reason(choice: Choice, *, called: bool = False) -> tuple[str | None, str | None]:
    """Anthropic's reason of an end, and the sequence that stopped it.

    ``called``: the choice has called a tool.
    """
    if choice.reason == "length":
        return "max_tokens", None
    if choice.reason != "stop":
        return None, None
    if called:
        return "tool_use", None
    if isinstance(choice.stop_reason, str):
        return "stop_sequence", choice.stop_reason
    return "end_turn", None


def reply(head: chunks.Head, call: Call) -> Reply:
    """The answer to a messages request."""
    return MessagesStream(head, call) if call.stream else MessagesWhole(head, call)


class MessagesWhole(WholeReply):
    """An answer as one message."""

    def __init__(self, head: chunks.Head, call: Call) -> None:
        super().__init__(call)
        self._head = head

    def response(self) -> Response:
        (choice,) = self.choices
        blocks, called = self._blocks(choice)
        document: dict[str, Any] = {
            "id": self._head.id,
            "type": "message",
            "role": "assistant",
            "content": blocks,
            "model": self._head.model,
        }
        reason, sequence = stop_reason(choice, called=called)
        ending = {"stop_reason": reason, "stop_sequence": sequence}
        document |= {name: value for name, value in ending.items() if value is not None}
        document |= {"usage": _usage(self)}
        return fastapi.document(document)

    def _blocks(self, choice: Choice) -> tuple[list[dict[str, Any]], bool]:
        """The content, and whether a tool is called in it."""
        text: str | None = choice.text
        made: list[dict[str, Any]] = []
        if self.call.calling is not None:
            text, made = tools.message(self._head, self.call, choice)
        blocks: list[dict[str, Any]] = [
            {
                "type": "tool_use",
                "id": each["id"],
                "name": each["function"]["name"],
                "input": json.loads(each["function"]["arguments"]),
            }
            for each in made
        ]
        if text or not blocks:
            blocks.insert(0, {"type": "text", "text": text or ""})
        return blocks, bool(made)


class MessagesStream(StreamedReply):
    """An answer as Anthropic's events."""

    def __init__(self, head: chunks.Head, call: Call) -> None:
        super().__init__(call)
        self._head = head
        self._block = False
        self._deltas: tools.Deltas | None = None

    def add(self, choices: Sequence[Choice]) -> None:
        super().add(choices)
        if self.call.calling is not None:
            self._deltas = tools.Deltas(self._head, self.choices[0])

    def begin(self, parts: list[bytes]) -> None:
        message: dict[str, Any] = {
            "id": self._head.id,
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": self._head.model,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": self.prompt_tokens, "output_tokens": 0},
        }
        parts.append(_event({"type": "message_start", "message": message}))

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        if self._deltas is not None:
            for told in self._deltas.after(text):
                parts.append(self._called(told))
            return
        if not text:
            return
        if not self._block:
            self._block = True
            start = {"type": "text", "text": ""}
            event = {"type": "content_block_start", "content_block": start, "index": 0}
            parts.append(_event(event))
        parts.append(_BEFORE + json.dumps(text)[1:-1].encode() + _AFTER)

    def _called(self, told: Mapping[str, Any]) -> bytes:
        """An event of the block that calls a tool."""
        function = told["function"]
        if "id" in told:
            self._block = True
            block = {"type": "tool_use", "id": told["id"], "name": function["name"], "input": {}}
            return _event({"type": "content_block_start", "content_block": block, "index": 0})
        delta = {"type": "input_json_delta", "partial_json": function["arguments"]}
        return _event({"type": "content_block_delta", "delta": delta, "index": 0})

    def finish(self, parts: list[bytes]) -> None:
        if self._block:
            parts.append(_event({"type": "content_block_stop", "index": 0}))
        called = self._deltas is not None and self._deltas.begun
        reason, sequence = stop_reason(self.choices[0], called=called)
        counts = _usage(self)
        delta = {"stop_reason": reason, "stop_sequence": sequence}
        parts.append(_event({"type": "message_delta", "delta": delta, "usage": counts}))
        parts.append(_event({"type": "message_stop"}))


def _usage(reply: Reply) -> dict[str, int]:
    """Token counts; what was in the prefix cache is told apart if the engine is to."""
    counts = {"input_tokens": reply.prompt_tokens, "output_tokens": reply.completion_tokens}
    if not reply.call.tells_cached:
        return counts
    cached, created = reply.cached_tokens, replies.created_tokens(reply)
    told = {"cache_read_input_tokens": cached, "cache_creation_input_tokens": created}
    return counts | told | {"input_tokens": reply.prompt_tokens - cached - created}


def _event(document: dict[str, Any]) -> bytes:
    return chunks.event(document, document["type"])


# Prebuilt: what stands before and after the text of a delta.
_BEFORE, _AFTER = _event(
    {
        "type": "content_block_delta",
        "delta": {"type": "text_delta", "text": "TEXT"},
        "index": 0,
    }
).split(b"TEXT")
