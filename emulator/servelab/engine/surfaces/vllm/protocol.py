"""From a body to a checked request, as vLLM 0.33 checks it."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from servelab.engine.calls import Call, Prompt, Served
from servelab.engine.surfaces.vllm import bodies, messages, refusals, rules
from servelab.engine.text import vocabulary

_TOKENIZE: TypeAdapter[bodies.TokenizePrompt | bodies.TokenizeChat] = TypeAdapter(
    bodies.TokenizePrompt | bodies.TokenizeChat
)

BodyT = TypeVar("BodyT", bound=BaseModel)


def load(raw: bytes, content_type: str) -> Any:
    """A body as JSON; None for an empty one. Raises Refusal.

    ``content_type`` is the header as it came.
    """
    if content_type.lower().split(";", maxsplit=1)[0] != "application/json":
        raise refusals.Refusal(
            f"The content type must be application/json, not {content_type or 'left out'}.",
            kind=refusals.SCHEMA,
        )
    try:
        return json.loads(raw) if raw else None
    except json.JSONDecodeError as error:
        raise refusals.malformed(error.msg, error.pos) from None
    except (ValueError, RecursionError):
        raise refusals.unreadable() from None


def validate(kind: type[BodyT], document: Any) -> BodyT:
    """A document as its model. Raises Refusal."""
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        raise refusals.schema(error.errors(include_url=False, include_context=False)) from None


def tokenize(document: Any) -> bodies.TokenizePrompt | bodies.TokenizeChat:
    """What to tokenize: a prompt or messages. Raises Refusal."""
    try:
        return _TOKENIZE.validate_python(document)
    except ValidationError as error:
        raise refusals.schema(error.errors(include_url=False, include_context=False)) from None


def parse_chat(raw: bytes, content_type: str, served: Served) -> Call:
    """A chat request. Raises Refusal."""
    document = load(raw, content_type)
    request = validate(bodies.ChatRequest, document)
    return chat(request, document["messages"], served)


def chat(request: bodies.ChatRequest, said: Sequence[Mapping[str, Any]], served: Served) -> Call:
    """A chat request whose schema is met; ``said`` are its messages as they came."""
    check_model(request.model, served)
    choice = request.tool_choice
    if choice not in (None, "none"):
        raise refusals.Refusal("This engine runs without a tool parser: leave tool_choice out.")
    if request.chat_template is not None:
        raise refusals.Refusal("This engine takes no chat template from a request.")
    contents = [messages.text(message) for message in said]
    limit, name = request.max_completion_tokens, "max_completion_tokens"
    if limit is None:
        limit, name = request.max_tokens, "max_tokens"
    _check_limit(limit, name, served)
    role = "assistant" if request.add_generation_prompt else _last_role(said)
    last = contents[-1] if contents and request.echo and _last_role(said) == role else ""
    ids = tuple(vocabulary.encode_chat(contents))
    prompt = Prompt(len(ids), last, ids)
    logprobs = request.top_logprobs if request.logprobs else None
    return call(
        request,
        served,
        prompts=(prompt,),
        n=1 if request.n is None else request.n,
        limit=limit,
        logprobs=logprobs,
        chat=True,
        echo=bool(last),
        role=role,
    )


def parse_completion(raw: bytes, content_type: str, served: Served) -> Call:
    """A text completion request. Raises Refusal."""
    request = validate(bodies.CompletionRequest, load(raw, content_type))
    check_model(request.model, served)
    if request.suffix is not None:
        raise refusals.Refusal("This model takes no suffix: leave it out.", param="suffix")
    prompts = _prompts(request.prompt)
    limit, prompt_only = request.max_tokens, False
    _check_limit(limit, "max_tokens", served)
    if limit == 0 and request.echo:
        limit, prompt_only = 1, True  # vLLM computes one token to echo a prompt, and counts it
    return call(
        request,
        served,
        prompts=prompts,
        n=request.n,
        limit=limit,
        logprobs=request.logprobs,
        chat=False,
        echo=bool(request.echo),
        prompt_only=prompt_only,
        prompt_logprobs=bool(request.echo) and request.logprobs is not None,
    )


def call(
    request: bodies.Sampling,
    served: Served,
    *,
    prompts: tuple[Prompt, ...],
    n: int,
    limit: int | None,
    logprobs: int | None,
    prompt_logprobs: bool = False,
    **rest: Any,
) -> Call:
    """The checked request. Raises Refusal."""
    for prompt in prompts:
        if prompt.tokens > served.max_model_tokens:
            raise refusals.too_long(prompt.tokens, served.max_model_tokens)
    options = request.stream_options
    stop = [request.stop] if isinstance(request.stop, str) else request.stop or []
    checked = Call(
        prompts=prompts,
        n=n,
        max_tokens=limit,
        min_tokens=request.min_tokens,
        ignore_eos=request.ignore_eos,
        stream=bool(request.stream),
        include_usage=bool(options and options.include_usage),
        continuous_usage=bool(options and options.include_usage and options.continuous_usage_stats),
        seed=request.seed,
        stop=tuple(text for text in stop if text),
        stop_token_ids=frozenset(request.stop_token_ids or ()),
        include_stop=request.include_stop_str_in_output,
        logprobs=logprobs,
        prompt_logprobs=prompt_logprobs or request.prompt_logprobs is not None,
        return_token_ids=bool(request.return_token_ids),
        **rest,
    )
    for prompt in prompts:
        rules.sampling(request, n, checked.limit_tokens(prompt, served))
    if n * len(prompts) > rules.MAX_N:
        message = f"{n} answers to {len(prompts)} prompts are more than {rules.MAX_N} at once."
        raise refusals.Refusal(message)
    try:
        rules.engine(request, logprobs, [token for prompt in prompts for token in prompt.ids])
    except refusals.Refusal as refusal:
        if not checked.stream:
            raise
        return dataclasses.replace(checked, late=refusal)
    return checked


def check_model(name: str | None, served: Served) -> None:
    """A missing or empty name means the one that is served. Raises Refusal."""
    if name and name != served.name:
        raise refusals.unknown_model(name, served.name)


def _check_limit(limit: int | None, name: str, served: Served) -> None:
    if limit is not None and limit > served.max_model_tokens:
        message = f"{name} must be at most {served.max_model_tokens}, not {limit}."
        raise refusals.Refusal(message, param=name)


def _last_role(said: Sequence[Mapping[str, Any]]) -> str:
    return str(said[-1].get("role", "")) if said else ""


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
        raise rules.no_prompt()
    return tuple(prompts)


def _text_prompt(text: str) -> Prompt:
    # White space alone is a token too where nothing else is.
    return Prompt(vocabulary.count(text) or min(1, len(text)), text)


def _id_prompt(ids: list[int]) -> Prompt:
    return Prompt(len(ids), vocabulary.decode(ids), tuple(ids))
