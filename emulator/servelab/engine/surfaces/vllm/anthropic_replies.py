"""Answers in the shape of Anthropic's messages API."""

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from servelab.engine.calls import Call
from servelab.engine.exchange import Response
from servelab.engine.replying import Choice, Reply, StreamedReply, WholeReply
from servelab.engine.surfaces import fastapi
from servelab.engine.surfaces.vllm import chunks, replies, thinking, tools
from servelab.engine.text import thoughts


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
        thought: str | None = None
        made: list[dict[str, Any]] = []
        if self.call.thinks is not None:
            thought, text = thinking.split(choice)
        if self.call.calling is not None:
            text, made = tools.message(self._head, self.call, choice, text or "")
        blocks: list[dict[str, Any]] = [
            {
                "type": "tool_use",
                "id": each["id"],
                "name": each["function"]["name"],
                "input": json.loads(each["function"]["arguments"]),
            }
            for each in made
        ]
        if text or not (blocks or thought):
            blocks.insert(0, {"type": "text", "text": text or ""})
        if thought:
            told = {"thinking": thought, "signature": _signature(self._head)}
            blocks.insert(0, {"type": "thinking", **told})
        return blocks, bool(made)


class MessagesStream(StreamedReply):
    """An answer as Anthropic's events."""

    def __init__(self, head: chunks.Head, call: Call) -> None:
        super().__init__(call)
        self._head = head
        self._block: str | None = None  # the kind of the block that is open
        self._index = -1
        self._told = 0  # characters of the answer
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
        if self.call.thinks is not None:
            text = self._after_thoughts(choice, text, parts)
        if self._deltas is not None:
            for told in self._deltas.after(text):
                self._call(told, parts)
        elif text:
            self._open({"type": "text", "text": ""}, parts)
            parts.append(_DELTA % (json.dumps(text)[1:-1].encode(), self._index))

    def _after_thoughts(self, choice: Choice, text: str, parts: list[bytes]) -> str:
        """What is said of the next part of the text, once what is thought of it is told."""
        assert isinstance(choice.answer, thoughts.Thinking)
        before, self._told = self._told, self._told + len(text)
        thought, said = choice.answer.split(text, before)
        if thought:
            self._open({"type": "thinking", "thinking": ""}, parts)
            self._delta({"type": "thinking_delta", "thinking": thought}, parts)
        return said

    def _open(self, block: dict[str, Any], parts: list[bytes]) -> None:
        """Begin a block, unless it is one of the kind that is open."""
        if self._block == block["type"]:
            return
        self._close(parts)
        self._block = block["type"]
        self._index += 1
        start = {"type": "content_block_start", "content_block": block, "index": self._index}
        parts.append(_event(start))

    def _close(self, parts: list[bytes]) -> None:
        if self._block == "thinking":
            told = {"type": "signature_delta", "signature": _signature(self._head)}
            self._delta(told, parts)
        if self._block is not None:
            parts.append(_event({"type": "content_block_stop", "index": self._index}))
        self._block = None

    def _delta(self, delta: dict[str, Any], parts: list[bytes]) -> None:
        event = {"type": "content_block_delta", "delta": delta, "index": self._index}
        parts.append(_event(event))

    def _call(self, told: Mapping[str, Any], parts: list[bytes]) -> None:
        """Events of the block that calls a tool."""
        function = told["function"]
        if "id" in told:
            block = {"type": "tool_use", "id": told["id"], "name": function["name"], "input": {}}
            self._open(block, parts)
        if "arguments" in function:
            delta = {"type": "input_json_delta", "partial_json": function["arguments"]}
            self._delta(delta, parts)

    def finish(self, parts: list[bytes]) -> None:
        self._close(parts)
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


# Prebuilt, with places for the text of a delta and the number of its block.
_DELTA = _event(
    {
        "type": "content_block_delta",
        "delta": {"type": "text_delta", "text": "%b"},
        "index": 0,
    }
).replace(b'"index":0', b'"index":%d')


def _signature(head: chunks.Head) -> str:
    """What a client gives back with the thoughts; nobody looks at it."""
    return uuid.uuid5(uuid.NAMESPACE_OID, head.id).hex
