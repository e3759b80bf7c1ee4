"""The messages a chat request may hold, and what of them its prompt is made of."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import ValidationError

from servelab.engine.surfaces.vllm import openai_types, refusals
from servelab.engine.text import template

Messages = Annotated[Any, openai_types.taken_as("messages")]

# Where the text of a part stands, by its type; other parts hold no text.
_TEXTS = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
    "thinking": "thinking",
    "tool_reference": "name",
}
_MEDIA = frozenset(
    {
        *("input_image", "image_url", "image_embeds", "image_pil", "audio_embeds", "video_embeds"),
        *("prompt_embeds", "audio_url", "input_audio", "video_url"),
    }
)
# A line by which a client attributes its requests; it differs each time, and vLLM takes it out.
BILLING = "x-anthropic-billing-header"


def rename_reasoning(said: object) -> None:
    """Move what stands under the old name of ``reasoning`` to the new one."""
    for message in said if isinstance(said, list) else ():
        if isinstance(message, dict) and "reasoning_content" in message:
            thought = message.pop("reasoning_content")
            if message.get("reasoning") is None and thought is not None:
                message["reasoning"] = thought


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
    """What earlier answers called, by the schema that vLLM meets last. Raises Refusal.

    It looks at one after the other, and no further than the first that is none.
    """
    for message in said:
        made = message.get("tool_calls") if message.get("role") == "assistant" else None
        for place, call in enumerate(made or ()):
            try:
                openai_types.validator("tool_calls").validate_python([call])
            except ValidationError as error:
                told = error.errors(include_url=False)
                moved: list[Any] = [{**each, "loc": (place, *each["loc"][1:])} for each in told]
                raise refusals.schema(moved) from None


def read(
    said: Sequence[Mapping[str, Any]], validated: Sequence[Any]
) -> Iterator[Mapping[str, Any]]:
    """The messages, one by one, with the parts of their content as vLLM reads them; may refuse.

    ``validated``: the same ones through the schema. Where that took the parts for certain, they
    count as they came; where it left them for later, each must be a part of its role.
    """
    return (_read(*pair) for pair in zip(said, validated, strict=True))


def _read(message: Mapping[str, Any], validated: Any) -> Mapping[str, Any]:
    content = validated.get("content")
    if content is None or isinstance(content, str | list):
        return message
    try:
        return {**message, "content": list(content)}
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False)[0]["msg"]
        told = f"A part of a message by {message.get('role')!r} cannot be read: {wrong}."
        raise refusals.Refusal(told) from None


def turn(message: Mapping[str, Any]) -> template.Message:
    """A message for the chat template. Raises Refusal as ``text`` does."""
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
    """The text of a message. Raises Refusal for a part that is no text."""
    content = message.get("content")
    parts = [content] if content is None or isinstance(content, str) else content
    texts = (_part(part) for part in parts)
    if message.get("role") == "system":
        texts = (_without_billing(said) for said in texts)
    return "\n".join(said for said in texts if said)


def _without_billing(said: str) -> str:
    return said.partition("\n")[2] if said.startswith(BILLING) else said


def _part(part: object) -> str:
    if part is None or isinstance(part, str):
        return part or ""
    if not isinstance(part, Mapping):
        raise refusals.Refusal(f"A part of a message must be an object, not {part!r}.")
    kind = part.get("type")
    if not isinstance(kind, str | None):
        raise refusals.Refusal("The type of a part must be a text.", param="type")
    if part.get("uuid") is not None or kind is None:
        kind = next((name for name in (*_MEDIA, "tool_reference") if name in part), None)
    said = part.get(_TEXTS[kind]) if kind in _TEXTS else None
    if kind not in _TEXTS and kind not in _MEDIA:
        raise refusals.Refusal(f"There is no part of type {kind!r}.", param="type")
    if kind in _MEDIA or not isinstance(said, str | None):
        param = "prompt_embeds" if kind == "prompt_embeds" else None
        raise refusals.Refusal(f"This model takes text parts only, not {kind!r}.", param=param)
    return said or ""
