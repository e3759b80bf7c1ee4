"""Answers of TensorRT-LLM's responses API: one object, or events with names."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from servelab.engine.exchange import Response
from servelab.engine.replying import Choice, Reply
from servelab.engine.surfaces import called, events, fastapi, likely
from servelab.engine.surfaces.tensorrt_llm import replies, responses
from servelab.engine.surfaces.tensorrt_llm.asking import Asked

OPENING = ("response.created", "response.in_progress")


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
        document = self.build(status, output, _usage(reply))
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


def part(text: str, logprobs: Sequence[Any] | None = None) -> dict[str, Any]:
    """The text of a message."""
    return {"annotations": [], "text": text, "type": "output_text", "logprobs": logprobs}


def _usage(reply: Reply) -> dict[str, Any]:
    prompt, made = reply.prompt_tokens, reply.completion_tokens
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": reply.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + made,
    }


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
    return [document.message([part(text.strip())], "completed")] if text else []


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
        self._number = 0
        self._said = ""
        self._place = {"item_id": document.message_id, "output_index": 0}

    def _event(self, kind: str, **fields: object) -> bytes:
        self._number += 1
        return events.numbered(self._number - 1, kind, **fields)

    def begin(self, parts: list[bytes]) -> None:
        document = _as_typed(self._document.build("in_progress"))
        parts += [self._event(kind, response=document) for kind in OPENING]

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        if not text or self.call.calling:
            return
        place = self._place | {"content_index": 0}
        if not self._said:
            item = self._document.message([], "in_progress")
            parts.append(self._event("response.output_item.added", output_index=0, item=item))
            parts.append(self._event("response.content_part.added", **place, part=part("", [])))
        self._said += text
        parts.append(self._event("response.output_text.delta", **place, delta=text, logprobs=[]))

    def finish(self, parts: list[bytes]) -> None:
        text = likely.text(self.choices[0])
        output = _output(self._document, self, text)
        if self._said:
            self._end_message(parts)
        elif self.call.calling and output:
            self._tell_item(output[0], parts)
        document = _as_typed(self._document.ended(self, output))
        # It is called completed even where it is not.
        parts.append(self._event("response.completed", response=document))

    def _end_message(self, parts: list[bytes]) -> None:
        text, place = self._said, self._place | {"content_index": 0}
        parts.append(self._event("response.output_text.done", **place, text=text, logprobs=[]))
        parts.append(self._event("response.content_part.done", **place, part=part(text)))
        item = self._document.message([part(text)], "completed")
        parts.append(self._event("response.output_item.done", output_index=0, item=item))

    def _tell_item(self, item: Mapping[str, Any], parts: list[bytes]) -> None:
        """Something that was held back to the end: a call, or the text that was none."""
        if item["type"] == "message":
            self._said = item["content"][0]["text"]
            self._end_message(parts)
            return
        place = self._place | {"item_id": item["id"]}
        begun = {**item, "arguments": "", "status": "in_progress"}
        parts.append(self._event("response.output_item.added", output_index=0, item=begun))
        done = {"arguments": item["arguments"], "name": item["name"]}
        delta = item["arguments"]
        parts.append(self._event("response.function_call_arguments.delta", **place, delta=delta))
        parts.append(self._event("response.function_call_arguments.done", **place, **done))
        ended = {**item, "status": "completed"}
        parts.append(self._event("response.output_item.done", output_index=0, item=ended))
