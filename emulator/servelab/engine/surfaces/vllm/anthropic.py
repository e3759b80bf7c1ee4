"""Anthropic's messages API as vLLM 0.33 offers it over its chat completions."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, field_validator

from servelab.engine.calls import Call, Served
from servelab.engine.exchange import Response
from servelab.engine.replying import Choice, Reply, StreamedReply, WholeReply
from servelab.engine.surfaces.vllm import (
    bodies,
    chunks,
    messages,
    protocol,
    refusals,
    rules,
)

# Anthropic's word for a refusal, by HTTP status.
KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}

BlockKind = Literal[
    "text",
    "image",
    "tool_use",
    "tool_result",
    "tool_reference",
    "thinking",
    "redacted_thinking",
    "tool_addition",
    "tool_removal",
]


class Block(BaseModel):
    type: BlockKind
    text: str | None = None
    source: dict[str, Any] | None = None
    id: str | None = None
    tool_use_id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None
    content: str | list[dict[str, Any]] | None = None
    is_error: bool | None = None
    thinking: str | None = None


class Message(BaseModel):
    role: Literal["user", "assistant", "system"]
    content: str | list[Block]


class Tool(BaseModel):
    name: str
    description: str | None = None
    input_schema: dict[str, Any]


class ToolChoice(BaseModel):
    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None


class CountRequest(BaseModel):
    model: str
    messages: list[Message]
    system: str | list[Block] | None = None
    tool_choice: ToolChoice | None = None
    tools: list[Tool] | None = None

    @field_validator("model")
    @classmethod
    def named(cls, name: str) -> str:
        """An empty name is none."""
        if not name:
            raise ValueError("a model is required")
        return name


class MessagesRequest(CountRequest):
    max_tokens: int
    metadata: dict[str, Any] | None = None
    stop_sequences: Annotated[list[str], Field(max_length=rules.MAX_STOP_STRINGS)] | None = None
    stream: bool | None = False
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None

    @field_validator("max_tokens")
    @classmethod
    def positive(cls, tokens: int) -> int:
        """At least one token."""
        if tokens <= 0:
            raise ValueError("max_tokens must be positive")
        return tokens


def parse(raw: bytes, content_type: str, served: Served) -> Call:
    """A messages request. Raises Refusal."""
    request = protocol.validate(MessagesRequest, protocol.load(raw, content_type))
    body: dict[str, Any] = {
        "model": request.model,
        "messages": _chat(request),
        "max_completion_tokens": request.max_tokens,
        "stop": request.stop_sequences,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "top_k": request.top_k,
        "stream": request.stream,
    }
    try:
        if request.tools and (request.tool_choice is None or request.tool_choice.type != "none"):
            raise refusals.Refusal("This engine runs without a tool parser: leave tools out.")
        chat = protocol.validate(bodies.ChatRequest, body)
        return protocol.chat(chat, body["messages"], served)
    except refusals.Refusal as refusal:
        raise translated(refusal) from None


def count(raw: bytes, content_type: str, served: Served) -> dict[str, Any]:
    """The answer to how many tokens a prompt takes. Raises Refusal."""
    request = protocol.validate(CountRequest, protocol.load(raw, content_type))
    body: dict[str, Any] = {"model": request.model, "messages": _chat(request)}
    try:
        call = protocol.chat(protocol.validate(bodies.ChatRequest, body), body["messages"], served)
    except refusals.Refusal as refusal:
        raise translated(refusal) from None
    tokens = call.prompts[0].tokens
    return {"input_tokens": tokens, "context_management": {"original_input_tokens": tokens}}


class Refused(refusals.Refusal):
    """A refusal in Anthropic's shape."""

    def body(self) -> bytes:
        error = {"type": self.kind, "message": str(self)}
        return json.dumps({"type": "error", "error": error}).encode()


def translated(refusal: refusals.Refusal) -> Refused:
    """The same refusal in Anthropic's words."""
    other = "api_error" if refusal.status >= 500 else "invalid_request_error"
    kind = KINDS.get(refusal.status, other)
    return Refused(str(refusal), status=refusal.status, kind=kind)


def _chat(request: CountRequest) -> list[dict[str, Any]]:
    """Its messages as those of a chat; what is no text does not count."""
    system = [{"role": "system", "content": _text(request.system)}] if request.system else []
    said = [{"role": each.role, "content": _text(each.content)} for each in request.messages]
    return system + said


def _text(content: str | Sequence[Block]) -> str:
    if isinstance(content, str):
        return content
    if any(block.type == "image" for block in content):
        raise translated(refusals.Refusal("This model takes text blocks only, not 'image'."))
    return "\n".join(
        block.text or messages.text({"content": block.content if block.content else ""})
        for block in content
    )


def stop_reason(choice: Choice) -> tuple[str | None, str | None]:
    """Anthropic's reason of an end, and the sequence that stopped it."""
    if choice.reason == "length":
        return "max_tokens", None
    if choice.reason != "stop":
        return None, None
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
        document: dict[str, Any] = {
            "id": self._head.id,
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": choice.text}],
            "model": self._head.model,
        }
        reason, sequence = stop_reason(choice)
        ending = {"stop_reason": reason, "stop_sequence": sequence}
        document |= {name: value for name, value in ending.items() if value is not None}
        counts = {"input_tokens": self.prompt_tokens, "output_tokens": self.completion_tokens}
        document |= {"usage": counts}
        return Response(body=json.dumps(document, separators=(",", ":")).encode())


class MessagesStream(StreamedReply):
    """An answer as Anthropic's events."""

    def __init__(self, head: chunks.Head, call: Call) -> None:
        super().__init__(call)
        self._head = head
        self._block = False

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
        if not text:
            return
        if not self._block:
            self._block = True
            start = {"type": "text", "text": ""}
            event = {"type": "content_block_start", "content_block": start, "index": 0}
            parts.append(_event(event))
        parts.append(_BEFORE + json.dumps(text)[1:-1].encode() + _AFTER)

    def finish(self, parts: list[bytes]) -> None:
        if self._block:
            parts.append(_event({"type": "content_block_stop", "index": 0}))
        reason, sequence = stop_reason(self.choices[0])
        counts = {"input_tokens": self.prompt_tokens, "output_tokens": self.completion_tokens}
        delta = {"stop_reason": reason, "stop_sequence": sequence}
        parts.append(_event({"type": "message_delta", "delta": delta, "usage": counts}))
        parts.append(_event({"type": "message_stop"}))


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
