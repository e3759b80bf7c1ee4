"""Answers of the responses API: one object, or events with names."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from servelab.engine import exchange as exchanges
from servelab.engine.core.sequences import FinishReason
from servelab.engine.exchange import Response
from servelab.engine.replying import Choice, Reply
from servelab.engine.surfaces import called, fastapi, items, likely
from servelab.engine.surfaces.sglang import calling, making, responses, telling
from servelab.engine.surfaces.sglang.asking import Asked

STATUSES = {
    FinishReason.LENGTH.value: "incomplete",
    FinishReason.ABORT.value: "failed",
}
HEAD = Response(content_type=exchanges.EVENT_STREAM, headers=(("Cache-Control", "no-cache"),))


class Document:
    """The answer as one object, at any time of its making. ``keep`` is given what it came to."""

    def __init__(
        self,
        request: responses.Request,
        rid: str,
        created: int,
        keep: Callable[[dict[str, Any]], None] = lambda document: None,
    ) -> None:
        self.rid = rid
        self.keep = keep
        self._request = request
        self._created = created
        digits = uuid.uuid5(uuid.NAMESPACE_OID, f"{rid}/{created}").hex
        self.message_id, self.call_id = f"msg_{digits}", f"fc_{digits[:8]}"

    def build(
        self,
        status: str,
        output: Sequence[Mapping[str, Any]] = (),
        usage: Mapping[str, Any] | None = None,
        error: str | None = None,
    ) -> dict[str, Any]:
        """The whole."""
        request, reasoning = self._request, self._request.reasoning
        effort = None if reasoning is None else reasoning.effort
        incomplete = {"reason": "max_output_tokens"} if status == "incomplete" else None
        return {
            "id": self.rid,
            "object": "response",
            "created_at": self._created,
            "model": request.model,
            "output": list(output),
            "status": status,
            "usage": usage,
            "parallel_tool_calls": request.parallel_tool_calls is not False,
            "tool_choice": request.choice,
            "tools": [tool.model_dump() for tool in request.tools],
            "error": None if error is None else {"code": "server_error", "message": error},
            "incomplete_details": incomplete,
            "instructions": request.instructions,
            "max_output_tokens": request.max_output_tokens,
            "previous_response_id": request.previous_response_id,
            "reasoning": {
                "effort": effort if effort in responses.ECHOED_EFFORTS else None,
                "summary": None,
            },
            "store": request.store,
            "temperature": request.temperature,
            "text": self._text(output),
            "top_p": request.top_p,
            "truncation": request.truncation,
            "user": request.user,
            "metadata": request.metadata or {},
        }

    def _text(self, output: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
        if self._request.text is not None:
            return self._request.text.model_dump(by_alias=True, exclude_none=True)
        plain = bool(output) and all(item["type"] == "message" for item in output)
        return {"format": {"type": "text"}} if plain else None

    def ended(self, reply: Reply, output: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The whole at its end."""
        choice = reply.choices[0]
        status = STATUSES.get(choice.reason, "completed")
        error = None
        if status == "failed":
            error = telling.QUEUE_ABORT if telling.in_queue(choice) else telling.ABORT
        counts = (telling.prompt_tokens(reply), reply.completion_tokens, reply.cached_tokens)
        document = self.build(status, output, items.usage(*counts), error)
        self.keep(document)
        return document

    def message(
        self, text: str, logprobs: Sequence[Mapping[str, Any]] | None = None
    ) -> dict[str, Any]:
        """A message that is complete."""
        return self.item([items.part(text, logprobs)], "completed")

    def item(self, content: Sequence[Mapping[str, Any]], status: str) -> dict[str, Any]:
        """A message."""
        return {
            "id": self.message_id,
            "content": content,
            "role": "assistant",
            "status": status,
            "type": "message",
            "phase": "final_answer",
        }

    def called(self, name: str, arguments: str, status: str) -> dict[str, Any]:
        """A call of a function."""
        return {
            "arguments": arguments,
            "call_id": calling.name(self.rid),
            "name": name,
            "type": "function_call",
            "id": self.call_id,
            "status": status,
        }


def failed(document: Document, message: str, *, counted: bool = False) -> bytes:
    """All events of an answer that cannot be made; ``counted``: the scheduler said so."""
    told = items.Events()
    parts = told.opening(document.build("in_progress"))
    counts = items.usage(0, 0, 0) if counted else None
    parts.append(told.tell("failed", response=document.build("failed", (), counts, message)))
    return b"".join(parts)


class ResponsesWhole(making.Whole):
    """One object."""

    def __init__(self, asked: Asked, server: making.Telling, document: Document) -> None:
        super().__init__(asked, server)
        self._document = document

    def response(self) -> Response:
        choice = self.choices[0]
        made = called.found(choice.text) if self.call.calling else None
        output: list[dict[str, Any]] = []
        if made is not None:
            output.append(self._document.called(*made, "completed"))
        elif text := likely.text(choice):
            output.append(self._document.message(text, self._logprobs(choice)))
        return fastapi.document(self._document.ended(self, output))

    def _logprobs(self, choice: Choice) -> Sequence[Mapping[str, Any]] | None:
        top = self.call.logprobs
        if top is None:
            return None
        made = likely.tokens(choice, 0, choice.sent + choice.pending, top)
        content: Sequence[Mapping[str, Any]] = telling.chat_logprobs(made)["content"]
        return content


class ResponsesStream(making.Stream):
    """Events; those of a message come at the end, where its text might have been a call's."""

    head = HEAD

    def __init__(
        self, asked: Asked, server: making.Telling, document: Document, *, waits: bool
    ) -> None:
        super().__init__(asked, server)
        self._document = document
        self._events = items.Events()
        self._waits = waits
        self._kept: list[bytes] = []
        self._said = ""
        self._deltas: called.Deltas | None = None

    def add(self, choices: Sequence[Choice]) -> None:
        super().add(choices)
        if self.call.calling:
            self._deltas = called.Deltas(self.choices[0])

    def begin(self, parts: list[bytes]) -> None:
        parts += self._events.opening(self._document.build("in_progress"))

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        if not text:
            return
        if self._deltas is not None:
            self._call(self._deltas, text, parts)
            return
        told = self._kept if self._waits else parts
        if not self._said:
            item = self._document.item([], "in_progress")
            told += self._events.begin_message(item, items.part(""))
        self._said += text
        told.append(self._events.text(text))

    def _call(self, deltas: called.Deltas, text: str, parts: list[bytes]) -> None:
        begins, more = deltas.after(text)
        if begins:
            item = self._document.called(deltas.name, "", "in_progress")
            parts.append(self._events.begin(item))
        if more:
            parts.append(self._events.arguments(more))

    def finish(self, parts: list[bytes]) -> None:
        parts += self._kept
        output = [item for item in (self._message(parts), self._called(parts)) if item]
        document = self._document.ended(self, output)
        parts.append(self._events.tell(document["status"], response=document))

    def _message(self, parts: list[bytes]) -> dict[str, Any] | None:
        if not self._said:
            return None
        item = self._document.message(self._said)
        parts += self._events.end_message(self._said, item)
        return item

    def _called(self, parts: list[bytes]) -> dict[str, Any] | None:
        deltas = self._deltas
        if deltas is None or not deltas.begun:
            return None
        item = self._document.called(deltas.name, deltas.arguments, "completed")
        parts += self._events.end_call(item)
        return item
