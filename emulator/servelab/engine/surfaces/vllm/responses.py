"""OpenAI's responses API as vLLM 0.33 offers it, without a store and without tools of its own."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from servelab.engine.calls import Call, Prompt, Served
from servelab.engine.exchange import Response
from servelab.engine.replying import Choice, Reply, StreamedReply, WholeReply
from servelab.engine.surfaces.vllm import bodies, chunks, messages, protocol, refusals
from servelab.engine.surfaces.vllm.refusals import Refusal
from servelab.engine.text import vocabulary

Penalty = Annotated[float, Field(ge=-2.0, le=2.0)]
# Fields of a request that its answer repeats.
REPEATED = (
    "instructions",
    "metadata",
    "max_tool_calls",
    "previous_response_id",
    "prompt_cache_options",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "text",
    "truncation",
    "user",
)


class ResponsesRequest(bodies.Sampling):
    input: str | list[dict[str, Any]]
    background: bool | None = False
    include: list[str] | None = None
    instructions: str | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    metadata: dict[str, str] | None = None
    parallel_tool_calls: bool | None = True
    previous_response_id: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: Literal["in_memory", "24h"] | None = None
    reasoning: dict[str, Any] | None = None
    safety_identifier: str | None = None
    service_tier: Literal["auto", "default", "flex", "scale", "priority"] = "auto"
    store: bool | None = True
    text: dict[str, Any] | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] = "auto"
    tools: list[dict[str, Any]] = Field(default_factory=list)
    top_logprobs: bodies.Count = 0
    truncation: Literal["auto", "disabled"] | None = "disabled"
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None

    @model_validator(mode="before")
    @classmethod
    def as_it_came(cls, data: Any) -> Any:
        """The checks that come before the schema. Raises Refusal."""
        return _checked(data) if isinstance(data, dict) else data


def _checked(body: dict[str, Any]) -> dict[str, Any]:
    choice = body.get("tool_choice", "auto")
    named = isinstance(choice, Mapping) and choice.get("type") in ("function", "custom")
    if not body.get("tools"):
        if choice == "required" or named:
            raise Refusal("tool_choice needs tools.", param="tool_choice")
        if choice in ("auto", "none"):
            body = body | {"tool_choice": "none"}
    elif named and choice.get("name") not in [
        tool.get("name") for tool in body["tools"] if isinstance(tool, Mapping)
    ]:
        raise Refusal("tool_choice names none of the tools.", param="tool_choice")
    if body.get("prompt") is not None:
        raise Refusal("prompt templates are not supported.", param="prompt")
    if body.get("background") and not body.get("store", True):
        raise Refusal("background needs store: true.", param="background")
    return body


def parse(raw: bytes, content_type: str, served: Served) -> tuple[Call, dict[str, Any]]:
    """A responses request, and the answer's fields that follow from it. Raises Refusal."""
    request = protocol.validate(ResponsesRequest, protocol.load(raw, content_type))
    protocol.check_model(request.model, served)
    if request.store and request.background:
        message = "This engine keeps no responses: leave background out."
        raise Refusal(message, kind=refusals.INVALID, param="background")
    if request.previous_response_id is not None:
        raise unknown(request.previous_response_id)
    limit = request.max_output_tokens
    if limit is not None and limit > served.max_model_tokens:
        message = f"max_output_tokens must be at most {served.max_model_tokens}, not {limit}."
        raise Refusal(message, param="max_output_tokens")
    ids = tuple(vocabulary.encode_chat(_contents(request)))
    prompt = Prompt(len(ids), ids=ids)
    if prompt.tokens == served.max_model_tokens:
        message = f"The input takes {prompt.tokens} tokens, which leaves none for an answer."
        raise Refusal(message, kind=refusals.INVALID, param="input")
    told = request.top_logprobs if "message.output_text.logprobs" in (request.include or ()) else 0
    call = protocol.call(
        request,
        served,
        prompts=(prompt,),
        n=1,
        limit=limit,
        logprobs=told or None,
        chat=True,
    )
    return call, _fields(request, call, call.limit_tokens(prompt, served))


def unknown(response_id: str) -> Refusal:
    """No such response is kept."""
    message = f"There is no response {response_id!r}: this engine keeps none."
    return Refusal(message, status=404, kind=refusals.INVALID, param="response_id")


def _contents(request: ResponsesRequest) -> list[str]:
    said = [request.instructions] if request.instructions else []
    if isinstance(request.input, str):
        return [*said, request.input]
    return said + [messages.text(item) for item in request.input]


def _fields(request: ResponsesRequest, call: Call, limit_tokens: int) -> dict[str, Any]:
    """The fields that are the same from the first event to the last."""
    fields = {name: getattr(request, name) for name in REPEATED}
    return fields | {
        "object": "response",
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "temperature": 1.0 if request.temperature is None else request.temperature,
        "tool_choice": request.tool_choice,
        "tools": request.tools,
        "top_p": 1.0 if request.top_p is None else request.top_p,
        "background": bool(request.background),
        "max_output_tokens": limit_tokens,
        "prompt": None,
        "top_logprobs": call.logprobs,
        "presence_penalty": request.presence_penalty or 0.0,
        "frequency_penalty": request.frequency_penalty or 0.0,
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "input_messages": None,
        "output_messages": None,
    }


class Document:
    """The answer as one object, at any time of its making."""

    def __init__(self, head: chunks.Head, fields: Mapping[str, Any]) -> None:
        self._head = head
        self._fields = fields
        self.item_id = "msg_" + head.id.removeprefix("resp_")

    def response(self, reply: Reply | None) -> dict[str, Any]:
        """The whole; without a reply: in progress."""
        status = "in_progress" if reply is None else self.status(reply)
        details = {"reason": "max_output_tokens"} if status == "incomplete" else None
        return {
            "id": self._head.id,
            "created_at": self._head.created,
            "model": self._head.model,
            "incomplete_details": details,
            "output": [] if reply is None else [self.item(reply)],
            "status": status,
            "usage": None if reply is None else _usage(reply),
            **self._fields,
        }

    @staticmethod
    def status(reply: Reply) -> str:
        """How it ended."""
        return "incomplete" if reply.choices[0].reason == "length" else "completed"

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
            "cached_tokens": 0,
            "cache_write_tokens": 0,
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
    return ResponsesStream(document, call) if call.stream else ResponsesWhole(document, call)


class ResponsesWhole(WholeReply):
    """An answer as one response."""

    def __init__(self, document: Document, call: Call) -> None:
        super().__init__(call)
        self._document = document

    def response(self) -> Response:
        document = self._document.response(self)
        return Response(body=json.dumps(document, separators=(",", ":")).encode())


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

    def begin(self, parts: list[bytes]) -> None:
        response = {"response": self._document.response(None)}
        item = {"item": self._document.item(None), "output_index": 0}
        parts.append(self._event("response.created", response))
        parts.append(self._event("response.in_progress", response))
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
        status = self._document.status(self)
        response = {"response": self._document.response(self)}
        parts.append(self._event(f"response.{status}", response))
