"""Answers of the responses API: one object, or events with names."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from servelab.engine import exchange as exchanges
from servelab.engine.core.sequences import FinishReason
from servelab.engine.exchange import Response
from servelab.engine.replying import Choice, Reply
from servelab.engine.surfaces import called, events, fastapi, likely
from servelab.engine.surfaces.sglang import calling, making, responses, telling
from servelab.engine.surfaces.sglang.asking import Asked

STATUSES = {
    FinishReason.LENGTH.value: "incomplete",
    FinishReason.ABORT.value: "failed",
}
OPENING = ("response.created", "response.in_progress")
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
        document = self.build(status, output, usage(*counts), error)
        self.keep(document)
        return document

    def message(
        self, text: str, logprobs: Sequence[Mapping[str, Any]] | None = None
    ) -> dict[str, Any]:
        """A message that is complete."""
        return self.item([part(text, logprobs)], "completed")

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


def part(text: str, logprobs: Sequence[Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """The text of a message."""
    return {"annotations": [], "text": text, "type": "output_text", "logprobs": logprobs}


def usage(prompt_tokens: int, made_tokens: int, cached_tokens: int) -> dict[str, Any]:
    """Token counts."""
    return {
        "input_tokens": prompt_tokens,
        "input_tokens_details": {"cached_tokens": cached_tokens, "cache_write_tokens": 0},
        "output_tokens": made_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt_tokens + made_tokens,
    }


def failed(document: Document, message: str, *, counted: bool = False) -> bytes:
    """All events of an answer that cannot be made; ``counted``: the scheduler said so."""
    told = document.build("in_progress")
    parts = [events.numbered(number, kind, response=told) for number, kind in enumerate(OPENING)]
    ending = document.build("failed", (), usage(0, 0, 0) if counted else None, message)
    return b"".join([*parts, events.numbered(len(parts), "response.failed", response=ending)])


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
        self._number = 0
        self._waits = waits
        self._kept: list[bytes] = []
        self._said = ""
        self._deltas: called.Deltas | None = None
        self._place = {"item_id": document.message_id, "output_index": 0}

    def add(self, choices: Sequence[Choice]) -> None:
        super().add(choices)
        if self.call.calling:
            self._deltas = called.Deltas(self.choices[0])

    def _event(self, kind: str, **fields: object) -> bytes:
        self._number += 1
        return events.numbered(self._number - 1, kind, **fields)

    def begin(self, parts: list[bytes]) -> None:
        document = self._document.build("in_progress")
        parts += [self._event(kind, response=document) for kind in OPENING]

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        if not text:
            return
        if self._deltas is not None:
            self._call(self._deltas, text, parts)
            return
        told = self._kept if self._waits else parts
        if not self._said:
            item = self._document.item([], "in_progress")
            told.append(self._event("response.output_item.added", output_index=0, item=item))
            told.append(
                self._event(
                    "response.content_part.added", **self._place, content_index=0, part=part("")
                )
            )
        self._said += text
        told.append(
            self._event(
                "response.output_text.delta",
                **self._place,
                content_index=0,
                delta=text,
                logprobs=[],
            )
        )

    def _call(self, deltas: called.Deltas, text: str, parts: list[bytes]) -> None:
        begins, more = deltas.after(text)
        if begins:
            item = self._document.called(deltas.name, "", "in_progress")
            parts.append(self._event("response.output_item.added", output_index=0, item=item))
        if more:
            place = self._place | {"item_id": self._document.call_id}
            parts.append(self._event("response.function_call_arguments.delta", **place, delta=more))

    def finish(self, parts: list[bytes]) -> None:
        parts += self._kept
        output = [item for item in (self._message(parts), self._called(parts)) if item]
        document = self._document.ended(self, output)
        parts.append(self._event(f"response.{document['status']}", response=document))

    def _message(self, parts: list[bytes]) -> dict[str, Any] | None:
        if not self._said:
            return None
        text, place = self._said, self._place | {"content_index": 0}
        parts.append(self._event("response.output_text.done", **place, text=text, logprobs=[]))
        parts.append(self._event("response.content_part.done", **place, part=part(text)))
        item = self._document.message(text)
        parts.append(self._event("response.output_item.done", output_index=0, item=item))
        return item

    def _called(self, parts: list[bytes]) -> dict[str, Any] | None:
        deltas = self._deltas
        if deltas is None or not deltas.begun:
            return None
        place = self._place | {"item_id": self._document.call_id}
        done = {"arguments": deltas.arguments, "name": deltas.name}
        parts.append(self._event("response.function_call_arguments.done", **place, **done))
        item = self._document.called(deltas.name, deltas.arguments, "completed")
        parts.append(self._event("response.output_item.done", output_index=0, item=item))
        return item
