"""Anthropic's messages API as vLLM 0.33 offers it over its chat completions."""

import json
from collections.abc import Sequence
from typing import Any

from servelab.engine.calls import Call, Served
from servelab.engine.surfaces import events
from servelab.engine.surfaces.vllm import (
    anthropic_bodies,
    bodies,
    messages,
    protocol,
    reading,
    refusals,
    tools,
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


def parse(raw: bytes, content_type: str, served: Served) -> Call:
    """A messages request. Raises Refusal."""
    request = reading.validate(anthropic_bodies.MessagesRequest, reading.load(raw, content_type))
    body: dict[str, Any] = {
        "model": request.model,
        "max_completion_tokens": request.max_tokens,
        "stop": request.stop_sequences,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "top_k": request.top_k,
        "stream": request.stream,
        "cache_salt": request.cache_salt,
        "kv_transfer_params": request.kv_transfer_params,
        "ec_transfer_params": request.ec_transfer_params,
        "vllm_xargs": request.vllm_xargs,
        "chat_template_kwargs": request.chat_template_kwargs,
    }
    if isinstance(request.thinking, anthropic_bodies.Enabled):
        body["thinking_token_budget"] = request.thinking.budget_tokens
    body |= _output(request.output_config)
    try:
        body |= {"messages": _chat(request)} | _tools(request, served)
        chat = reading.validate(bodies.ChatRequest, body)
        return protocol.chat(chat, body["messages"], served)
    except refusals.Refusal as refusal:
        raise translated(refusal) from None


def _output(told: anthropic_bodies.OutputConfig | None) -> dict[str, Any]:
    """What an answer is to be, in the fields of a chat."""
    found: dict[str, Any] = {}
    if told is not None and told.format is not None and told.format.json_schema:
        schema = {"name": told.format.type, "schema": told.format.json_schema}
        found["response_format"] = {"type": "json_schema", "json_schema": schema}
    if told is not None and told.effort is not None:
        found["reasoning_effort"] = told.effort
    return found


def count(raw: bytes, content_type: str, served: Served) -> dict[str, Any]:
    """The answer to how many tokens a prompt takes. Raises Refusal."""
    request = reading.validate(anthropic_bodies.CountRequest, reading.load(raw, content_type))
    body: dict[str, Any] = {"model": request.model}
    try:
        body |= {"messages": _chat(request)} | _tools(request, served)
        call = protocol.chat(reading.validate(bodies.ChatRequest, body), body["messages"], served)
    except refusals.Refusal as refusal:
        raise translated(refusal) from None
    tokens = call.prompts[0].tokens
    return {"input_tokens": tokens, "context_management": {"original_input_tokens": tokens}}


class Refused(refusals.Refusal):
    """A refusal in Anthropic's shape."""

    def body(self) -> bytes:
        error = {"type": self.kind, "message": str(self)}
        return events.compact({"type": "error", "error": error})

    def last(self) -> bytes:
        return b"event: error\ndata: " + self.body() + b"\n\n"


def translated(refusal: refusals.Refusal) -> Refused:
    """The same refusal in Anthropic's words."""
    other = "api_error" if refusal.status >= 500 else "invalid_request_error"
    kind = KINDS.get(refusal.status, other)
    return Refused(str(refusal), status=refusal.status, kind=kind)


def _tools(request: anthropic_bodies.CountRequest, served: Served) -> dict[str, Any]:
    """Its tools and its choice among them as those of a chat.

    A choice among none is no matter where there is a parser, which the choice would need.
    """
    if request.tools is None:
        choice = request.tool_choice
        if choice is None or choice.type == "none" or tools.parser(served):
            return {}
        raise refusals.Refusal("tool_choice needs an engine with a tool parser.")
    offered = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": {"type": "object"} | tool.input_schema,
            },
        }
        for tool in request.tools
    ]
    choice = request.tool_choice
    chosen: Any = "auto" if choice is None else _CHOICES.get(choice.type)
    if chosen is None and choice is not None:
        chosen = {"type": "function", "function": {"name": choice.name}}
    return {"tools": offered, "tool_choice": chosen}


_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def _chat(request: anthropic_bodies.CountRequest) -> list[dict[str, Any]]:
    """Its messages as those of a chat; thoughts do not count."""
    said: list[dict[str, Any]] = []
    if request.system and (text := _system(request.system)):
        said.append({"role": "system", "content": text})
    for message in request.messages:
        if message.role == "system":
            if text := _system(message.content):
                said.append({"role": "system", "content": text})
        elif isinstance(message.content, str):
            said.append({"role": message.role, "content": message.content})
        else:
            said += _turns(message.role, message.content)
    return said


def _system(content: str | Sequence[anthropic_bodies.Block]) -> str:
    """A system prompt, without the header in which a client attributes its requests."""
    parts = [content] if isinstance(content, str) else [block.text or "" for block in content]
    return "".join(part for part in parts if not part.startswith(messages.BILLING))


def _turns(role: str, blocks: Sequence[anthropic_bodies.Block]) -> list[dict[str, Any]]:
    """A message's blocks: what tools answered, each by itself, then the message."""
    said, parts, calls = [], [], []
    for block in blocks:
        if block.type == "image":
            raise refusals.Refusal("This model takes text blocks only, not 'image'.")
        if block.type == "text" and block.text:
            parts.append(block.text)
        elif block.type == "tool_use":
            function = {"name": block.name or "", "arguments": json.dumps(block.input or {})}
            calls.append({"id": block.id or "call", "type": "function", "function": function})
        elif block.type == "tool_result" and role == "user":
            result = messages.text({"content": block.content})
            said.append({"role": "tool", "tool_call_id": block.tool_use_id, "content": result})
        elif block.type == "tool_result":
            parts.append(f"Tool result: {block.content or ''}")
    turn: dict[str, Any] = {"role": role}
    if parts:
        turn["content"] = "\n".join(parts)
    if calls:
        turn["tool_calls"] = calls
    return said if role == "user" and not parts else [*said, turn]
