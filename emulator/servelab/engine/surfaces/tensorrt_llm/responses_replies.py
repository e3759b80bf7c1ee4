"""Answers of TensorRT-LLM's responses API: one object, or events with names."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from servelab.engine.exchange import Response
from servelab.engine.replying import Choice, Reply
from servelab.engine.surfaces import called, fastapi, items, likely
from servelab.engine.surfaces.tensorrt_llm import replies, responses
from servelab.engine.surfaces.tensorrt_llm.asking import Asked


class Document:
    """The answer as one object, at any time of its making. ``keep`` is given what it came to."""

    def __init__(
        self,
        request: responses.Request,
        rid: str,
        model: str,
        created: int,
        keep: Callable[[dict[str, Any]], None],
    ) -> None:
        self.keep = keep
        self._request = request
        self._head = (rid, created, model)
        digits = uuid.uuid5(uuid.NAMESPACE_OID, f"{rid}/{created}").hex
        self.message_id = f"msg_{digits}"
        self._call = {"call_id": f"call_{digits}", "id": f"fc_{digits}"}

    def build(
        self,
        status: str,
        output: Sequence[Mapping[str, Any]] = (),
        usage: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The whole."""
        request, (rid, created, model) = self._request, self._head
        return {
            "id": rid,
            "created_at": created,
            "instructions": request.instructions,
            "metadata": request.metadata,
            "model": model,
            "object": "response",
            "output": list(output),
            "parallel_tool_calls": bool(request.parallel_tool_calls),
            "temperature": 1.0 if request.temperature is None else request.temperature,
            "tool_choice": request.tool_choice,
            "tools": [tool.told() for tool in request.tools],
            "top_p": 1.0 if request.top_p is None else request.top_p,
            "background": bool(request.background),
            "max_output_tokens": request.max_output_tokens,
            "max_tool_calls": request.max_tool_calls,
            "previous_response_id": request.previous_response_id,
            "prompt": None,
            "reasoning": request.reasoning and request.reasoning.model_dump(),
            "service_tier": request.service_tier,
            "status": status,
            "text": request.text and request.text.model_dump(by_alias=True),
            "top_logprobs": request.top_logprobs or 0,
            "truncation": request.truncation or "disabled",
            "usage": usage,
            "user": request.user,
        }

    def ended(self, reply: Reply, output: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The whole at its end."""
        status = "completed" if reply.choices[0].reason == "stop" else "incomplete"
        counts = (reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens)
        document = self.build(status, output, items.usage(*counts))
        self.keep(document)
        return document

    def message(self, content: Sequence[Mapping[str, Any]], status: str) -> dict[str, Any]:
        """A message."""
        head = {"id": self.message_id, "content": content, "role": "assistant"}
        return head | {"status": status, "type": "message"}

    def called(self, name: str, arguments: str, status: str | None = None) -> dict[str, Any]:
        """A call of a function."""
        call_id = {"call_id": self._call["call_id"]}
        told = {"arguments": arguments, **call_id, "name": name, "type": "function_call"}
        return told | {"id": self._call["id"], "status": status}


def _as_typed(document: Mapping[str, Any]) -> dict[str, Any]:
    """An object in an event, which goes through the types of OpenAI's own library."""
    absent = ("error", "incomplete_details", "conversation", "prompt_cache_key")
    more = dict.fromkeys((*absent, "prompt_cache_retention", "safety_identifier"))
    return {**document, **more, "created_at": float(document["created_at"])}


def _output(document: Document, reply: Reply, text: str) -> list[dict[str, Any]]:
    made = called.found(text) if reply.call.calling else None
    if made is not None:
        return [document.called(*made)]
    # Blanks around the text are left out at the end, though a stream has told them.
    return [document.message([items.part(text.strip())], "completed")] if text else []


class ResponsesWhole(replies.Whole):
    """One object."""

    def __init__(self, asked: Asked, server: replies.Telling, document: Document) -> None:
        super().__init__(asked, server)
        self._document = document

    def response(self) -> Response:
        output = _output(self._document, self, likely.text(self.choices[0]))
        return fastapi.document(self._document.ended(self, output))


class ResponsesStream(replies.Stream):
    """Events. A call is found in the whole text, and told at its end."""

    def __init__(self, asked: Asked, server: replies.Telling, document: Document) -> None:
        super().__init__(asked, server)
        self._document = document
        self._events = items.Events()
        self._said = ""

    def begin(self, parts: list[bytes]) -> None:
        parts += self._events.opening(_as_typed(self._document.build("in_progress")))

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        if not text or self.call.calling:
            return
        if not self._said:
            item = self._document.message([], "in_progress")
            parts += self._events.begin_message(item, items.part("", []))
        self._said += text
        parts.append(self._events.text(text))

    def finish(self, parts: list[bytes]) -> None:
        text = likely.text(self.choices[0])
        output = _output(self._document, self, text)
        if self._said:
            parts += self._message(self._said)
        elif self.call.calling and output:
            parts += self._held_back(output[0])
        document = _as_typed(self._document.ended(self, output))
        # It is called completed even where it is not.
        parts.append(self._events.tell("completed", response=document))

    def _message(self, text: str) -> list[bytes]:
        item = self._document.message([items.part(text)], "completed")
        return self._events.end_message(text, item)

    def _held_back(self, item: dict[str, Any]) -> list[bytes]:
        """What was not told before the end: a call, or the text that was none."""
        if item["type"] == "message":
            self._events.place(item)
            return self._message(item["content"][0]["text"])
        begun = item | {"arguments": "", "status": "in_progress"}
        told = [self._events.begin(begun), self._events.arguments(item["arguments"])]
        return told + self._events.end_call(item | {"status": "completed"})
