"""Answers in the shape of OpenAI's responses API."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from servelab.engine.calls import Call
from servelab.engine.exchange import Response
from servelab.engine.replying import Choice, Reply, StreamedReply, WholeReply
from servelab.engine.surfaces import fastapi
from servelab.engine.surfaces.vllm import chunks, replies, tools


class Document:
    """The answer as one object, at any time of its making."""

    def __init__(self, head: chunks.Head, fields: Mapping[str, Any]) -> None:
        self._fields = fields
        self.item_id = "msg_" + head.id.removeprefix("resp_")
        self.call_id = "fc_" + head.id.removeprefix("resp_")
        self.head = head

    def response(self, reply: Reply | None) -> dict[str, Any]:
        """The whole; without a reply: in progress."""
        status = "in_progress" if reply is None else self.status(reply)
        details = {"reason": "max_output_tokens"} if status == "incomplete" else None
        return {
            "id": self.head.id,
            "created_at": self.head.created,
            "model": self.head.model,
            "incomplete_details": details,
            "output": [] if reply is None else [self.output(reply)],
            "status": status,
            "usage": None if reply is None else _usage(reply),
            **self._fields,
        }

    @staticmethod
    def status(reply: Reply) -> str:
        """How it ended."""
        return "incomplete" if reply.choices[0].reason == "length" else "completed"

    def output(self, reply: Reply) -> dict[str, Any]:
        """What the answer is: a message, or a call."""
        made = tools.found(reply.choices[0].text) if reply.call.calling else None
        return self.item(reply) if made is None else self.called(*made, self.status(reply))

    def called(self, name: str, arguments: str, status: str) -> dict[str, Any]:
        """A call of a function."""
        return {
            "arguments": arguments,
            "call_id": tools.call_id(self.head, 0),
            "name": name,
            "type": "function_call",
            "id": self.call_id,
            "namespace": None,
            "status": status,
        }

    def item(self, reply: Reply | None) -> dict[str, Any]:
        """The message; without a reply: begun."""
        text = "" if reply is None else reply.choices[0].text
        return {
            "id": self.item_id,
            "content": [part(text, None)] if text else [],
            "role": "assistant",
            "status": "in_progress" if reply is None else self.status(reply),
            "type": "message",
            "phase": None,
        }


def part(text: str, logprobs: list[Any] | None) -> dict[str, Any]:
    """The content of a message."""
    return {"annotations": [], "text": text, "type": "output_text", "logprobs": logprobs}


def _usage(reply: Reply) -> dict[str, Any]:
    return {
        "input_tokens": reply.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": reply.cached_tokens,
            "cache_write_tokens": replies.created_tokens(reply),
            "input_tokens_per_turn": [],
            "cached_tokens_per_turn": [],
        },
        "output_tokens": reply.completion_tokens,
        "output_tokens_details": {
            "reasoning_tokens": 0,
            "tool_output_tokens": 0,
            "output_tokens_per_turn": [],
            "tool_output_tokens_per_turn": [],
        },
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
    }


def reply(head: chunks.Head, call: Call, fields: Mapping[str, Any]) -> Reply:
    """The answer to a responses request."""
    document = Document(head, fields)
    if not call.stream:
        return ResponsesWhole(document, call)
    return ResponsesStream(document, call) if call.calling is None else CallStream(document, call)


class ResponsesWhole(WholeReply):
    """An answer as one response."""

    def __init__(self, document: Document, call: Call) -> None:
        super().__init__(call)
        self._document = document

    def response(self) -> Response:
        document = self._document.response(self)
        return fastapi.document(document)


class ResponsesStream(StreamedReply):
    """An answer as the events of the responses API."""

    def __init__(self, document: Document, call: Call) -> None:
        super().__init__(call)
        self._document = document
        self._number = 0
        item = {"item_id": self._document.item_id, "output_index": 0}
        self._item: dict[str, Any] = item
        self._place: dict[str, Any] = item | {"content_index": 0}
        kind = "response.output_text.delta"
        delta = self._place | {"delta": "%b", "logprobs": [], "sequence_number": 0, "type": kind}
        event = chunks.event(delta, kind)
        self._delta = event.replace(b'"sequence_number":0', b'"sequence_number":%d')

    def _event(self, kind: str, fields: Mapping[str, Any]) -> bytes:
        document = {**fields, "sequence_number": self._number, "type": kind}
        self._number += 1
        return chunks.event(document, kind)

    def begin_response(self, parts: list[bytes]) -> None:
        """The events that are the same for all answers."""
        response = {"response": self._document.response(None)}
        parts.append(self._event("response.created", response))
        parts.append(self._event("response.in_progress", response))

    def begin(self, parts: list[bytes]) -> None:
        self.begin_response(parts)
        item = {"item": self._document.item(None), "output_index": 0}
        parts.append(self._event("response.output_item.added", item))
        added = self._place | {"part": part("", [])}
        parts.append(self._event("response.content_part.added", added))

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        if text:
            parts.append(self._delta % (json.dumps(text)[1:-1].encode(), self._number))
            self._number += 1

    def finish(self, parts: list[bytes]) -> None:
        text = self.choices[0].text
        said = self._place | {"text": text, "logprobs": []}
        parts.append(self._event("response.output_text.done", said))
        done = self._place | {"part": part(text, None)}
        parts.append(self._event("response.content_part.done", done))
        item = {"item": self._document.item(self), "output_index": 0}
        parts.append(self._event("response.output_item.done", item))
        self.finish_response(parts)

    def finish_response(self, parts: list[bytes]) -> None:
        """The last event."""
        status = self._document.status(self)
        response = {"response": self._document.response(self)}
        parts.append(self._event(f"response.{status}", response))


class CallStream(ResponsesStream):
    """A call of a function as events."""

    def __init__(self, document: Document, call: Call) -> None:
        super().__init__(document, call)
        self._deltas: tools.Deltas | None = None
        self._name = ""
        self._arguments = ""
        self._item = {"item_id": document.call_id, "output_index": 0}

    def add(self, choices: Sequence[Choice]) -> None:
        super().add(choices)
        self._deltas = tools.Deltas(self._document.head, self.choices[0])

    def begin(self, parts: list[bytes]) -> None:
        self.begin_response(parts)

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        assert self._deltas is not None
        for told in self._deltas.after(text):
            function = told["function"]
            if "name" in function:
                self._name = function["name"]
                item = self._document.called(self._name, "", "in_progress")
                added = {"item": item, "output_index": 0}
                parts.append(self._event("response.output_item.added", added))
            else:
                self._arguments += function["arguments"]
                delta = self._item | {"delta": function["arguments"]}
                parts.append(self._event("response.function_call_arguments.delta", delta))

    def finish(self, parts: list[bytes]) -> None:
        status = self._document.status(self)
        if self._name:
            done = self._item | {"arguments": self._arguments, "name": self._name}
            parts.append(self._event("response.function_call_arguments.done", done))
            item = self._document.called(self._name, self._arguments, status)
            done = {"item": item, "output_index": 0}
            parts.append(self._event("response.output_item.done", done))
        self.finish_response(parts)
