"""The conversation of a responses request: what several items say of one turn is laid together."""

from collections.abc import Mapping, Sequence
from typing import Any

from servelab.engine.surfaces.vllm import messages, refusals
from servelab.engine.surfaces.vllm.refusals import Refusal
from servelab.engine.text import template

_CALLS = frozenset({"function_call", "custom_tool_call"})
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})


def turns(
    instructions: str | None, said: str | Sequence[Mapping[str, Any]]
) -> list[template.Message]:
    """What the chat template is given. Raises Refusal."""
    found: list[dict[str, Any]] = []
    if instructions:
        found.append({"role": "system", "content": instructions})
    if isinstance(said, str):
        found.append({"role": "user", "content": said})
    else:
        for item in said:
            _add(found, item)
    return [messages.turn(message) for message in found]


def _add(found: list[dict[str, Any]], item: Mapping[str, Any]) -> None:
    kind, content = item.get("type"), item.get("content")
    if kind in _CALLS:
        given = item.get("arguments", item.get("input"))
        function = {"name": item.get("name"), "arguments": given}
        _assistant(found).setdefault("tool_calls", []).append(
            {"type": "function", "function": function}
        )
    elif kind in _OUTPUTS:
        found.append({"role": "tool", "content": item.get("output")})
    elif kind == "reasoning":
        if item.get("encrypted_content"):
            raise Refusal("Encrypted content is not supported.", param="input")
        _say(found, "reasoning", "")
    elif item.get("role") == "assistant" and (text := _text(kind, content)) is not None:
        _say(found, "content", text)
    elif "role" in item:
        found.append({"role": item["role"], "content": content})
    else:
        raise Refusal(f"input must not hold items of type {kind}.", param="input")


def _text(kind: str | None, content: Any) -> str | None:
    """What an assistant said before: the first of its parts; vLLM fails on one without text."""
    if isinstance(content, str):
        return content
    if content and "text" in content[0]:
        text: str = content[0]["text"]
        return text
    if kind == "message":
        raise refusals.internal()
    return None


def _assistant(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The last message if it is the assistant's, or a new one."""
    if not found or found[-1]["role"] != "assistant":
        found.append({"role": "assistant"})
    return found[-1]


def _say(found: list[dict[str, Any]], field: str, text: str) -> None:
    """Add to the assistant's last message, or where that has it already begin one."""
    message = _assistant(found)
    if field in message:
        found.append({"role": "assistant", field: text})
    else:
        message[field] = text
