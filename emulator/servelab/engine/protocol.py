"""The requests an engine takes, checked as vLLM 0.33 checks them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from servelab.engine import refusals, vocabulary

DEFAULT_COMPLETION_TOKENS = 16
MAX_LOGPROBS = 20


class _Body(BaseModel):
    """Unknown fields are ignored, as the engines do."""

    model_config = ConfigDict(extra="ignore", protected_namespaces=())


class StreamOptions(_Body):
    include_usage: bool | None = True
    continuous_usage_stats: bool | None = False


class ResponseFormat(_Body):
    type: Literal["text", "json_object", "json_schema", "structural_tag"]


class Sampling(_Body):
    """What chat and text completions have in common."""

    model: str | None = None
    max_tokens: int | None = None
    min_tokens: int = 0
    n: int | None = 1
    seed: int | None = None
    stop: str | list[str] | None = None
    ignore_eos: bool = False
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = 0.0
    frequency_penalty: float | None = 0.0
    repetition_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    response_format: ResponseFormat | None = None
    request_id: str | None = None
    user: str | None = None


class ToolCall(_Body):
    id: str | None = None


class Message(_Body):
    role: str
    content: str | list[Any] | None = None
    tool_calls: list[ToolCall] | None = None


class ChatRequest(Sampling):
    messages: list[Message]
    max_completion_tokens: int | None = None
    logprobs: bool | None = False
    top_logprobs: int | None = 0
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False


class CompletionRequest(Sampling):
    prompt: str | list[Annotated[int, Field(ge=0)]] | list[list[int]] | list[str] | None = None
    echo: bool | None = False
    logprobs: int | None = None
    max_tokens: int | None = DEFAULT_COMPLETION_TOKENS


class TokenizeRequest(_Body):
    model: str | None = None
    prompt: str | None = None
    messages: list[Message] | None = None


class DetokenizeRequest(_Body):
    model: str | None = None
    tokens: list[int]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt: its length, and its text where it may have to be echoed."""

    tokens: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A checked request. ``max_tokens`` None: as many as the model's length leaves."""

    chat: bool
    prompts: tuple[Prompt, ...]
    n: int
    max_tokens: int | None
    min_tokens: int
    ignore_eos: bool
    stream: bool
    include_usage: bool
    continuous_usage: bool
    echo: bool
    seed: int | None


BodyT = TypeVar("BodyT", bound=_Body)


def parse(kind: type[BodyT], raw: bytes, content_type: str = "application/json") -> BodyT:
    """A body as its model. Raises Refusal."""
    if content_type not in ("application/json", "") and not content_type.endswith("+json"):
        raise refusals.Refusal(
            f"The content type must be application/json, not {content_type}.", kind=refusals.SCHEMA
        )
    try:
        document = json.loads(raw)
    except json.JSONDecodeError as error:
        raise refusals.malformed(error.msg, error.pos) from None
    except (UnicodeDecodeError, RecursionError):
        raise refusals.malformed("not text in UTF-8, or nested too deeply", 0) from None
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        raise refusals.schema(error.errors(include_url=False, include_context=False)) from None


def parse_chat(raw: bytes, content_type: str, served: str) -> Call:
    """A chat request. Raises Refusal."""
    request = parse(ChatRequest, raw, content_type)
    _check_model(request.model, served)
    _check_sampling(request)
    _check_chat(request)
    tokens = vocabulary.count_chat(content(message) for message in request.messages)
    limit = request.max_completion_tokens
    limit = request.max_tokens if limit is None else limit
    if limit is not None and limit < 1:
        name = "max_tokens" if request.max_completion_tokens is None else "max_completion_tokens"
        raise refusals.Refusal(f"{name} must be at least 1, not {limit}.", param="max_tokens")
    return _call(request, True, (Prompt(tokens),), limit, echo=False)


def parse_completion(raw: bytes, content_type: str, served: str) -> Call:
    """A text completion request. Raises Refusal."""
    request = parse(CompletionRequest, raw, content_type)
    _check_model(request.model, served)
    _check_sampling(request)
    if request.logprobs is not None and request.logprobs > MAX_LOGPROBS:
        message = f"logprobs must be at most {MAX_LOGPROBS}, not {request.logprobs}."
        raise refusals.Refusal(message, param="logprobs")
    limit = request.max_tokens
    if limit == 0 and request.echo:
        limit = 1  # vLLM computes one token to echo a prompt, and counts it
    if limit is not None and limit < 1:
        message = f"max_tokens must be at least 1, not {limit}."
        raise refusals.Refusal(message, param="max_tokens")
    return _call(request, False, _prompts(request.prompt), limit, echo=bool(request.echo))


def _call(
    request: Sampling, chat: bool, prompts: tuple[Prompt, ...], limit: int | None, *, echo: bool
) -> Call:
    if limit is not None and request.min_tokens > limit:
        raise refusals.Refusal(
            f"min_tokens must be at most max_tokens={limit}, not {request.min_tokens}."
        )
    options = request.stream_options
    return Call(
        chat=chat,
        prompts=prompts,
        n=request.n or 1,
        max_tokens=limit,
        min_tokens=request.min_tokens,
        ignore_eos=request.ignore_eos,
        stream=bool(request.stream),
        include_usage=bool(options and options.include_usage),
        continuous_usage=bool(options and options.include_usage and options.continuous_usage_stats),
        echo=echo,
        seed=request.seed,
    )


def _check_model(name: str | None, served: str) -> None:
    """A missing or empty name means the one that is served."""
    if name and name != served:
        raise refusals.unknown_model(name, served)


def _check_sampling(request: Sampling) -> None:
    if request.stream_options is not None and not request.stream:
        message = "stream_options is allowed only with stream: true."
        raise refusals.Refusal(message, param="stream_options")
    if request.n is not None and request.n < 1:
        raise refusals.Refusal(f"n must be at least 1, not {request.n}.")
    _check_range("temperature", request.temperature, 0, 2, param="temperature")
    if request.top_p is not None and not 0 < request.top_p <= 1:
        raise refusals.Refusal(
            f"top_p must be over 0 and at most 1, not {request.top_p}.", param="top_p"
        )
    _check_range("min_p", request.min_p, 0, 1)
    _check_range("presence_penalty", request.presence_penalty, -2, 2)
    _check_range("frequency_penalty", request.frequency_penalty, -2, 2)
    if request.min_tokens < 0:
        raise refusals.Refusal(f"min_tokens must be at least 0, not {request.min_tokens}.")


def _check_range(
    name: str, value: float | None, low: float, high: float, param: str | None = None
) -> None:
    if value is not None and not low <= value <= high:
        raise refusals.Refusal(f"{name} must be from {low} to {high}, not {value}.", param=param)


def _check_chat(request: ChatRequest) -> None:
    if request.top_logprobs is not None and request.top_logprobs > MAX_LOGPROBS:
        message = f"top_logprobs must be at most {MAX_LOGPROBS}, not {request.top_logprobs}."
        raise refusals.Refusal(message, param="logprobs")
    if request.continue_final_message and request.add_generation_prompt:
        raise refusals.Refusal(
            "continue_final_message and add_generation_prompt exclude each other: set one of them."
        )
    choice = request.tool_choice
    if isinstance(choice, str) and choice not in ("none", "auto", "required"):
        message = f"tool_choice must be none, auto, required or a function, not {choice!r}."
        raise refusals.Refusal(message, param="tool_choice")
    if isinstance(choice, Mapping) and _tool_name(choice) not in map(
        _tool_name, request.tools or ()
    ):
        message = f"tool_choice names {_tool_name(choice)!r}, which is none of the tools."
        raise refusals.Refusal(message, param="tool_choice")
    if isinstance(choice, Mapping) or choice in ("auto", "required"):
        raise refusals.Refusal("This engine runs without a tool parser: leave tool_choice out.")


def _tool_name(tool: Mapping[str, Any]) -> str:
    function = tool.get("function")
    return str(function.get("name", "")) if isinstance(function, Mapping) else ""


def content(message: Message) -> str:
    """The text of a message. Raises Refusal for a part that is no text."""
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    texts = []
    for part in message.content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            texts.append(part["text"])
        else:
            kind = part.get("type") if isinstance(part, Mapping) else part
            raise refusals.Refusal(f"This model takes text parts only, not {kind!r}.")
    return "\n".join(texts)


def _prompts(prompt: object) -> tuple[Prompt, ...]:
    """The prompts of a text completion: a text, token ids, or a list of either."""
    if isinstance(prompt, str):
        prompts = [_text_prompt(prompt)]
    elif isinstance(prompt, list) and prompt and isinstance(prompt[0], int):
        prompts = [_id_prompt(prompt)]
    elif isinstance(prompt, list):
        prompts = [
            _text_prompt(item) if isinstance(item, str) else _id_prompt(item) for item in prompt
        ]
    else:
        prompts = []
    if not prompts or any(each.tokens == 0 for each in prompts):
        message = "prompt must be a text, token ids, or a list of these, and not empty."
        raise refusals.Refusal(message, param="prompt")
    return tuple(prompts)


def _text_prompt(text: str) -> Prompt:
    return Prompt(vocabulary.count(text), text)


def _id_prompt(ids: list[int]) -> Prompt:
    beyond = [token for token in ids if token >= vocabulary.VOCABULARY_SIZE]
    if beyond:
        raise refusals.Refusal(
            f"Token id {beyond[0]} is not in the vocabulary, which ends at "
            f"{vocabulary.VOCABULARY_SIZE - 1}."
        )
    return Prompt(len(ids), vocabulary.decode(ids))
