"""Calls of functions in a chat's answer, as a tool parser of TensorRT-LLM finds them.

Where the client names the function, the answer is nothing but its arguments.
"""

import json
import uuid
from typing import Any

from servelab.engine.replying import Choice
from servelab.engine.surfaces import called
from servelab.engine.surfaces.tensorrt_llm.asking import Asked


class Forced:
    """The arguments of a function that was named, told as they come."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.begun = False

    def after(self, text: str) -> tuple[bool, str]:
        """Once this much more of them is there: whether the call begins, and more arguments."""
        begins = bool(text) and not self.begun
        self.begun |= begins
        return begins, text


Deltas = called.Deltas | Forced


def deltas(asked: Asked, choice: Choice) -> Deltas:
    """How a choice's call is told."""
    return called.Deltas(choice) if asked.forced is None else Forced(asked.forced)


def whole(asked: Asked, text: str) -> tuple[str, str] | None:
    """Name and arguments of the call in a whole text, if there is one, and it is complete."""
    if asked.call.calling is None:
        return None
    if asked.forced is None:
        return called.found(text)
    try:
        json.loads(text)
    except ValueError:
        return None
    return asked.forced, text


def end_reason(reason: str) -> str:
    """Why an answer ended that called a function."""
    return "tool_calls" if reason == "stop" else reason


def name() -> str:
    """The name of a call."""
    return f"chatcmpl-tool-{uuid.uuid4().hex}"


def told(
    call_id: str | None, function: str | None, arguments: str, index: int | None = None
) -> dict[str, Any]:
    """A call in a message or, with an ``index``, a part of it in an event."""
    place = {} if index is None else {"index": index}
    called_function = {"name": function, "arguments": arguments}
    return {"id": call_id, "type": "function", **place, "function": called_function}
