"""The messages a chat request may hold, by role.

The class names are those of OpenAI's client, because an error's path names the class.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Required

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from servelab.engine.surfaces.vllm import refusals
from servelab.engine.text import template


class TextPart(TypedDict, total=False):
    text: Required[str]
    type: Required[Literal["text"]]


class RefusalPart(TypedDict, total=False):
    refusal: Required[str]
    type: Required[Literal["refusal"]]


class ImagePart(TypedDict, total=False):
    image_url: Required[dict[str, Any] | str]
    type: Literal["image_url"]


class AudioPart(TypedDict, total=False):
    input_audio: Required[dict[str, Any]]
    type: Required[Literal["input_audio"]]


class VideoPart(TypedDict, total=False):
    video_url: Required[dict[str, Any] | str]
    type: Literal["video_url"]


class FilePart(TypedDict, total=False):
    file: Required[dict[str, Any]]
    type: Required[Literal["file"]]


Part = TextPart | ImagePart | AudioPart | FilePart | VideoPart | RefusalPart


class Function(TypedDict, total=False):
    name: Required[str]
    arguments: Required[str]


class ChatCompletionMessageFunctionToolCallParam(TypedDict, total=False):
    id: Required[str]
    function: Required[Function]
    type: Required[Literal["function"]]


class CustomCall(TypedDict, total=False):
    input: Required[str]
    name: Required[str]


class ChatCompletionMessageCustomToolCallParam(TypedDict, total=False):
    id: Required[str]
    custom: Required[CustomCall]
    type: Required[Literal["custom"]]


ToolCall = ChatCompletionMessageFunctionToolCallParam | ChatCompletionMessageCustomToolCallParam


class ChatCompletionDeveloperMessageParam(TypedDict, total=False):
    content: Required[str | Iterable[TextPart]]
    role: Required[Literal["developer"]]
    name: str


class ChatCompletionSystemMessageParam(TypedDict, total=False):
    content: Required[str | Iterable[TextPart]]
    role: Required[Literal["system"]]
    name: str


class ChatCompletionUserMessageParam(TypedDict, total=False):
    content: Required[str | Iterable[Part]]
    role: Required[Literal["user"]]
    name: str


class ChatCompletionAssistantMessageParam(TypedDict, total=False):
    role: Required[Literal["assistant"]]
    audio: dict[str, Any] | None
    content: str | Iterable[TextPart | RefusalPart] | None
    function_call: Function | None
    name: str
    refusal: str | None
    tool_calls: Iterable[ToolCall]


class ChatCompletionToolMessageParam(TypedDict, total=False):
    content: Required[str | Iterable[TextPart]]
    role: Required[Literal["tool"]]
    tool_call_id: Required[str]


class ChatCompletionFunctionMessageParam(TypedDict, total=False):
    content: Required[str | None]
    name: Required[str]
    role: Required[Literal["function"]]


class CustomChatCompletionMessageParam(TypedDict, total=False):
    role: Required[str]
    content: str | list[Part | str]
    name: str
    tool_call_id: str | None
    tool_calls: list[ToolCall] | None


Message = (
    ChatCompletionDeveloperMessageParam
    | ChatCompletionSystemMessageParam
    | ChatCompletionUserMessageParam
    | ChatCompletionAssistantMessageParam
    | ChatCompletionToolMessageParam
    | ChatCompletionFunctionMessageParam
    | CustomChatCompletionMessageParam
)


_CALLS: TypeAdapter[list[ToolCall]] = TypeAdapter(list[ToolCall])
# Kinds of parts a message may hold, by role; vLLM looks at them only when it makes the prompt.
_TEXTS = ("text",)
_KINDS: Mapping[object, Sequence[str]] = {
    "developer": _TEXTS,
    "system": _TEXTS,
    "tool": _TEXTS,
    "assistant": (*_TEXTS, "refusal"),
    "user": (*_TEXTS, "refusal"),
}


def list_calls(said: object) -> None:
    """Turn ``tool_calls`` that are no list into one. Raises Refusal."""
    for message in said if isinstance(said, list) else ():
        made = message.get("tool_calls") if isinstance(message, dict) else None
        if made is None or isinstance(made, list):
            continue
        if not isinstance(made, str | Mapping):
            raise refusals.Refusal("tool_calls must be a list.")
        message["tool_calls"] = list(made)


def check_calls(said: Sequence[Mapping[str, Any]]) -> None:
    """What earlier answers called, by the schema that vLLM meets last. Raises Refusal."""
    for message in said:
        made = message.get("tool_calls") if message.get("role") == "assistant" else None
        try:
            _CALLS.validate_python(made or [])
        except ValidationError as error:
            raise refusals.schema(error.errors(include_url=False)) from None


def checked(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same message, if its parts are such as its role may have. Raises Refusal."""
    content, kinds = message.get("content"), _KINDS.get(message.get("role"))
    if kinds is None or content is None or isinstance(content, str):
        return message
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind not in kinds or not isinstance(part.get(kind), str):
            param = "type" if kind == "file" else None
            raise refusals.Refusal("This model takes text parts only.", param=param)
    return message


def turn(message: Mapping[str, Any]) -> template.Message:
    """A message as it came, for the chat template. Raises Refusal as ``text`` does."""
    role = str(message.get("role", ""))
    made = message.get("tool_calls") if role == "assistant" else None
    calls = tuple(map(_called, made)) if isinstance(made, list) else ()
    return template.Message(role, text(message), calls)


def _called(call: object) -> template.Called:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        raise refusals.Refusal("tool_calls must hold functions.", param="tool_calls")
    arguments = function.get("arguments") or ""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return template.Called(str(function.get("name", "")), arguments)


def text(message: Mapping[str, Any]) -> str:
    """The text of a message as it came. Raises Refusal for a part that is no text."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(_part(part) for part in content)


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    kind = part.get("type", "text") if isinstance(part, Mapping) else part
    if isinstance(part, Mapping) and kind in ("text", "input_text", "output_text", "refusal"):
        said = part.get("refusal" if kind == "refusal" else "text")
        if isinstance(said, str):
            return said
    raise refusals.Refusal(f"This model takes text parts only, not {kind!r}.")
