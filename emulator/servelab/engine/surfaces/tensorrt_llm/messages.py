"""The messages a chat request may hold, as TensorRT-LLM takes them: any role, any kind of part."""

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from servelab.engine.surfaces.refusing import Refusal
from servelab.engine.text import template

TEXT_KINDS = ("text", "input_text", "output_text", "refusal")


class Part(BaseModel):
    """A part of a message's content."""

    model_config = ConfigDict(extra="allow")

    type: str
    text: str | None = None


class Message(BaseModel):
    """A message; what else it holds is not looked at."""

    model_config = ConfigDict(extra="allow")

    role: str
    content: str | list[str | Part] | None = None
    tool_calls: list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """Its text. Raises Refusal for a part that is none."""
        content = self.content
        if content is None or isinstance(content, str):
            return content or ""
        return "\n".join(_text(part) for part in content)


def tokens(
    said: Sequence[Message], functions: Iterable[template.Function], *, opens_answer: bool
) -> list[int]:
    """The conversation in the chat template. Raises Refusal for a part that is no text."""
    turns = [template.Message(each.role, each.text, tuple(_calls(each))) for each in said]
    return template.encode(turns, functions, opens_answer=opens_answer)


def _text(part: str | Part) -> str:
    if isinstance(part, str):
        return part
    if part.type not in TEXT_KINDS:
        raise Refusal(f"Unknown part type: {part.type}")
    return part.text or ""


def _calls(message: Message) -> Iterable[template.Called]:
    for call in message.tool_calls or ():
        function = call.get("function")
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            yield template.Called(function["name"], str(function.get("arguments") or ""))
