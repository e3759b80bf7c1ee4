"""The messages a chat request may hold, as SGLang 0.5 takes them."""

import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, field_validator, model_validator

from servelab.engine.surfaces import refusing
from servelab.engine.text import template

ROLES = ("system", "assistant", "tool", "function", "developer", "latest_reminder", "root")
Role = Literal["system", "assistant", "tool", "function", "developer", "latest_reminder", "root"]


class Body(BaseModel):
    """A part of a request; unknown fields are ignored."""


class TextPart(Body):
    type: Literal["text"]
    text: str


class ThinkingPart(Body):
    type: Literal["thinking", "reasoning"]
    thinking: str | None = None
    text: str | None = None

    @model_validator(mode="after")
    def one_of_two(self) -> "ThinkingPart":
        """Thoughts stand in one of two fields."""
        if (self.thinking is None) == (self.text is None):
            raise ValueError("exactly one of 'thinking' and 'text' must be given")
        return self


class MediaUrl(Body):
    url: str


class ImagePart(Body):
    type: Literal["image_url"]
    image_url: MediaUrl


class VideoPart(Body):
    type: Literal["video_url"]
    video_url: MediaUrl


class AudioPart(Body):
    type: Literal["audio_url"]
    audio_url: MediaUrl


class InlineAudio(Body):
    data: str
    format: str


class InlineAudioPart(Body):
    type: Literal["input_audio"]
    input_audio: InlineAudio


class ToolReference(Body):
    type: Literal["tool_reference"]
    name: str


Part = TextPart | ThinkingPart | ImagePart | VideoPart | AudioPart | InlineAudioPart | ToolReference


class Function(Body):
    description: str | None = None
    name: str
    parameters: Any = None
    strict: bool | None = None
    defer_loading: bool | None = None


class Tool(Body):
    type: str = "function"
    function: Function
    defer_loading: bool | None = None


class CalledFunction(Body):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class ToolCall(Body):
    id: str | None = None
    index: int | None = None
    type: Literal["function"] = "function"
    function: CalledFunction


def _no_thoughts(content: str | list[Part] | None) -> None:
    if isinstance(content, list) and any(isinstance(part, ThinkingPart) for part in content):
        raise ValueError("only an assistant's message may hold thoughts")


class GenericMessage(Body):
    role: Role
    content: str | list[Part] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    phase: Literal["commentary", "final_answer"] | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    tools: list[Tool] | None = None
    prefix: bool | None = None

    @field_validator("role", mode="before")
    @classmethod
    def lower(cls, value: Any) -> str:
        """Roles may be written in capitals."""
        if not isinstance(value, str):
            raise ValueError("role must be a string")
        if value.lower() not in ROLES:
            raise ValueError(f"role must be one of {', '.join(ROLES)}")
        return value.lower()


class UserMessage(Body):
    role: Literal["user"]
    content: str | list[Part]


def _checked(message: GenericMessage | UserMessage) -> GenericMessage | UserMessage:
    if message.role != "assistant":
        _no_thoughts(message.content)
    return message


Message = Annotated[GenericMessage | UserMessage, AfterValidator(_checked)]


def tokens(
    said: Sequence[GenericMessage | UserMessage], functions: Iterable[template.Function] = ()
) -> list[int]:
    """The conversation in the chat template. Raises Refusal for a part that is no text."""
    turns = [template.Message(each.role, _text(each), tuple(_calls(each))) for each in said]
    return template.encode(turns, functions)


def _calls(message: GenericMessage | UserMessage) -> Iterable[template.Called]:
    made = message.tool_calls if isinstance(message, GenericMessage) else None
    for call in made or ():
        given = call.function.arguments
        text = given if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False)
        yield template.Called(call.function.name or "", text)


def _text(message: GenericMessage | UserMessage) -> str:
    content = message.content
    if content is None or isinstance(content, str):
        return content or ""
    return " ".join(_part(part) for part in content)


def _part(part: Part) -> str:
    if isinstance(part, TextPart):
        return part.text
    if isinstance(part, ThinkingPart):
        return part.thinking or part.text or ""
    if isinstance(part, ToolReference):
        return part.name
    raise refusing.Refusal(
        f"Model only supports text input; received unsupported content type '{part.type}'."
    )
