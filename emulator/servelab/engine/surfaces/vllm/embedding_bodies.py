"""What vLLM 0.33 takes to embed: a prompt, a chat, or several chats, under two names."""

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from servelab.engine.surfaces.vllm import bodies, reading, refusals, rules
from servelab.engine.surfaces.vllm.messages import Messages

Chats = Annotated[list[Messages], Field(min_length=1)]


class Basics(bodies.Salted):
    """What all have in common."""

    model: str | None = None
    user: str | None = None
    truncate_prompt_tokens: Annotated[int, Field(ge=-1)] | None = None
    truncation_side: Literal["left", "right"] | None = None
    request_id: str = ""
    priority: int = Field(default=0, ge=bodies.INT64_MIN, le=bodies.INT64_MAX)
    mm_processor_kwargs: bodies.Arguments | None = None
    cache_salt: bodies.CacheSalt | None = None


class Encoded(bodies.Body):
    """How the vectors are told."""

    add_special_tokens: bool = True
    padding: Literal["max_length", "do_not_pad"] | None = None
    encoding_format: Literal["float", "base64", "bytes", "bytes_only"] = "float"
    embed_dtype: Literal["float32", "float16", "bfloat16", "fp8_e4m3", "fp8_e5m2"] = "float32"
    endianness: Literal["native", "big", "little"] = "native"
    dimensions: int | None = None
    use_activation: bool | None = None


class Templated(bodies.Body):
    """How a chat becomes a prompt."""

    add_generation_prompt: bool = False
    continue_final_message: bool = False
    add_special_tokens: bool = False
    chat_template: str | None = None
    chat_template_kwargs: bodies.Arguments | None = None
    media_io_kwargs: dict[str, bodies.Arguments] | None = None


class Prompted(bodies.Body):
    input: list[int] | list[list[int]] | str | list[str]


class Said(bodies.Body):
    messages: Messages


class SaidInTurn(bodies.Body):
    messages: Chats


# Errors are told in the order of the fields: of the last base first.
class OfPrompt(Basics, Prompted, Encoded):
    """A prompt, or several."""


class OfChat(Basics, Said, Templated, Encoded):
    """A chat."""


class OfChats(Basics, SaidInTurn, Templated, Encoded):
    """Several chats."""


class OfChatInput(OfChat):
    """A chat under the name of a prompt."""

    input: Messages


class OfChatsInput(OfChats):
    """Several chats under that name."""

    input: Chats


Request = OfPrompt | OfChat | OfChats
_KINDS: tuple[type[Request], ...] = (OfPrompt, OfChat, OfChats, OfChatInput, OfChatsInput)


def read(document: Any) -> Request:
    """A request as what it can be: rather a chat, if it can be that as well. Raises Refusal."""
    if isinstance(document, dict) and "normalize" in document:
        message = "normalize is no more: use use_activation."
        raise refusals.Refusal(message, param="normalize")
    wrong: list[Any] = []
    prompt: OfPrompt | None = None
    for kind in _KINDS:
        told = _named(document) if kind in (OfChatInput, OfChatsInput) else document
        try:
            if kind is not OfPrompt and isinstance(told, dict):
                rules.generation_prompt(told)
            found = kind.model_validate(told)
        except ValidationError as error:
            wrong += reading.errors(error)
            continue
        if not isinstance(found, OfPrompt):
            return found
        prompt = found
    if prompt is None:
        raise refusals.schema(wrong)
    return prompt


def _named(document: Any) -> Any:
    """A body whose input is chats, with them under their own name as well."""
    given = document.get("input") if isinstance(document, dict) else None
    if not isinstance(given, list) or not given or "messages" in document:
        return document
    chats = given if isinstance(given[0], list) else [given]
    said = [each for chat in chats for each in (chat if isinstance(chat, list) else [chat])]
    if not all(isinstance(each, dict) and isinstance(each.get("role"), str) for each in said):
        return document
    return {**document, "messages": given}
