"""Answers in the shape of OpenAI's responses API: whole, and as its events."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from servelab.engine.calls import Call
from servelab.engine.exchange import Response
from servelab.engine.replying import Choice, Reply, StreamedReply, WholeReply
from servelab.engine.surfaces import fastapi
from servelab.engine.surfaces.vllm import chunks, replies, scores, tools
from servelab.engine.surfaces.vllm.responses_document import Document, likely, part, split
from servelab.engine.text import thoughts


def reply(head: chunks.Head, call: Call, fields: Mapping[str, Any]) -> Reply:
    """The answer to a responses request."""
    document = Document(head, fields)
    return ResponsesStream(document, call) if call.stream else ResponsesWhole(document, call)


class ResponsesWhole(WholeReply):
    """An answer as one response."""

    def __init__(self, document: Document, call: Call) -> None:
        super().__init__(call)
        self._document = document

    def response(self) -> Response:
        document = self._document.response(self)
        # Here the status of thoughts is left out.
        thought = (item for item in document["output"] if item["type"] == "reasoning")
        for item in thought:
            item["status"] = None
        return fastapi.document(document)


class ResponsesStream(StreamedReply):
    """An answer as the events of the responses API: items one after the other."""

    def __init__(self, document: Document, call: Call) -> None:
        super().__init__(call)
        self._document = document
        self._number = 0  # of the next event
        self._place: dict[str, Any] = {}  # the part that is open
        self._item: dict[str, Any] = {"output_index": -1}  # the item that is
        self._open: str | None = None  # its type
        self._deltas: tools.Deltas | None = None
        self._arguments = ""
        self._told = 0  # characters of the answer
        self._delta = b""

    def add(self, choices: Sequence[Choice]) -> None:
        super().add(choices)
        if self.call.calling is not None:
            self._deltas = tools.Deltas(self._document.head, self.choices[0])

    def begin(self, parts: list[bytes]) -> None:
        response = {"response": self._document.response(None)}
        self._say("response.created", response, parts)
        self._say("response.in_progress", response, parts)
        fails = self.call.stuck or self.call.late is not None
        if self.call.thinks is None and self._deltas is None and not fails:
            self._begin_message(parts)

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        if self.call.thinks is not None:
            text = self._after_thoughts(choice, text, parts)
        if self._deltas is not None:
            for told in self._deltas.after(text):
                self._call(told["function"], parts)
        elif text:
            self._begin_message(parts)
            self._tell_text(choice, text, parts)

    def finish(self, parts: list[bytes]) -> None:
        self._close(parts)
        status = self._document.status(self)
        response = {"response": self._document.response(self)}
        self._say(f"response.{status}", response, parts)

    def _say(self, kind: str, fields: Mapping[str, Any], parts: list[bytes]) -> None:
        document = {**fields, "sequence_number": self._number, "type": kind}
        self._number += 1
        parts.append(chunks.event(document, kind))

    def _begin(self, kind: str, item: dict[str, Any], parts: list[bytes]) -> bool:
        """Open an item of this type, unless one is; whether it was opened."""
        if self._open == kind:
            return False
        self._close(parts)
        index = self._item["output_index"] + 1
        self._open, self._item = kind, {"item_id": item["id"], "output_index": index}
        self._place = self._item | {"content_index": 0}
        added = {"item": item, "output_index": index}
        self._say("response.output_item.added", added, parts)
        return True

    def _begin_message(self, parts: list[bytes]) -> None:
        if not self._begin("message", self._document.item(None), parts):
            return
        added = self._place | {"part": part("", [])}
        self._say("response.content_part.added", added, parts)
        kind = "response.output_text.delta"
        delta = self._place | {"delta": "%b", "logprobs": [], "sequence_number": 0, "type": kind}
        event = chunks.event(delta, kind)
        self._delta = event.replace(b'"sequence_number":0', b'"sequence_number":%d')

    def _tell_text(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        if self.call.logprobs is None:
            parts.append(self._delta % (json.dumps(text)[1:-1].encode(), self._number))
            self._number += 1
            return
        told = {"delta": text, "logprobs": self._likely(choice)}
        self._say("response.output_text.delta", self._place | told, parts)

    def _likely(self, choice: Choice) -> list[dict[str, Any]]:
        """The last token, in fewer words than in the end."""
        top = self.call.logprobs or 0
        (told,) = scores.chat(replies.made(self.call, choice, choice.sent - 1, 1), top)["content"]
        names = ("token", "logprob")
        others = [{name: each[name] for name in names} for each in told["top_logprobs"]]
        return [{name: told[name] for name in names} | {"top_logprobs": others}]

    def _after_thoughts(self, choice: Choice, text: str, parts: list[bytes]) -> str:
        """What is said of the next part of the text, once what is thought of it is told."""
        assert isinstance(choice.answer, thoughts.Thinking)
        assert self.call.thinks is not None
        before, self._told = self._told, self._told + len(text)
        thought, said = choice.answer.split(text, before)
        if thought and self.call.thinks.told:
            if self._begin("reasoning", self._document.thought(None, "in_progress"), parts):
                added = self._place | {"part": {"text": "", "type": "reasoning_text"}}
                self._say("response.content_part.added", added, parts)
            delta = self._place | {"delta": thought}
            self._say("response.reasoning_text.delta", delta, parts)
        return said

    def _call(self, function: Mapping[str, str], parts: list[bytes]) -> None:
        """A call that begins, or more of its arguments."""
        assert self._deltas is not None
        if "name" in function:
            item = self._document.called(self._deltas.made, "", "in_progress")
            self._begin("function_call", item, parts)
        if "arguments" in function:
            self._arguments += function["arguments"]
            delta = self._item | {"delta": function["arguments"]}
            self._say("response.function_call_arguments.delta", delta, parts)

    def _close(self, parts: list[bytes]) -> None:
        """End the item that is open."""
        if self._open is None:
            return
        item = _CLOSES[self._open](self, parts)
        done = {"item": item, "output_index": self._item["output_index"]}
        self._say("response.output_item.done", done, parts)
        self._open = None

    def _close_message(self, parts: list[bytes]) -> dict[str, Any]:
        text = split(self)[1]
        said = self._place | {"text": text, "logprobs": []}
        self._say("response.output_text.done", said, parts)
        done = self._place | {"part": part(text, likely(self))}
        self._say("response.content_part.done", done, parts)
        return self._document.item(self)

    def _close_thoughts(self, parts: list[bytes]) -> dict[str, Any]:
        thought = split(self)[0]
        status = self._document.status(self) if self.finished else "completed"
        self._say("response.reasoning_text.done", self._place | {"text": thought}, parts)
        done = self._place | {"part": {"text": thought, "type": "reasoning_text"}}
        self._say("response.content_part.done", done, parts)
        return self._document.thought(thought, status)

    def _close_call(self, parts: list[bytes]) -> dict[str, Any]:
        assert self._deltas is not None
        made = self._deltas.made
        done = self._item | {"arguments": self._arguments, "name": made.name}
        self._say("response.function_call_arguments.done", done, parts)
        return self._document.called(made, self._arguments, self._document.status(self))


_CLOSES = {
    "message": ResponsesStream._close_message,
    "reasoning": ResponsesStream._close_thoughts,
    "function_call": ResponsesStream._close_call,
}
