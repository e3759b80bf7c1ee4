"""From a body to a checked request, as vLLM 0.33 checks it."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from servelab.engine.calls import Call, Calling, Prompt, Served
from servelab.engine.surfaces.vllm import bodies, guided, messages, quick, refusals, rules
from servelab.engine.text import encoding, template, writing

# Of Llama 3 and of Qwen; vLLM takes a text for too long by its characters from there on.
LONGEST_TOKEN_CHARACTERS = 128

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
    return quick.chat(raw, content_type, served) or parse_any_chat(raw, content_type, served)


def parse_any_chat(raw: bytes, content_type: str, served: Served) -> Call:
    """A chat request, however uncommon. Raises Refusal."""
    document = load(raw, content_type)
    request = validate(bodies.ChatRequest, document)
    return chat(request, document["messages"], served)


def chat(request: bodies.ChatRequest, said: Sequence[Mapping[str, Any]], served: Served) -> Call:
    """A chat request whose schema is met; ``said`` are its messages as they came."""
    check_model(request.model, served)
    calling, functions = _functions(request, said, served)
    if request.chat_template is not None:
        raise refusals.Refusal("This engine takes no chat template from a request.")
    turns = [messages.turn(message) for message in said]
    check_characters(sum(len(turn.content) for turn in turns), served)
    limit, name = request.max_completion_tokens, "max_completion_tokens"
    if limit is None:
        limit, name = request.max_tokens, "max_tokens"
    _check_limit(limit, name, served)
    role = "assistant" if request.add_generation_prompt else _last_role(said)
    last = turns[-1].content if turns and request.echo and _last_role(said) == role else ""
    prompt = _chat_prompt(request, turns, last, served)
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
        calling=calling,
        write=writing.call(functions) if calling else None,
    )


def _functions(
    request: bodies.ChatRequest, said: Sequence[Mapping[str, Any]], served: Served
) -> tuple[Calling | None, list[template.Function]]:
    """How a function is to be called, and which may be. Raises Refusal."""
    choice = request.tool_choice
    if choice in (None, "none"):
        return None, []
    if not (served.has("enable-auto-tool-choice") and served.has("tool-call-parser")):
        raise refusals.Refusal("This engine runs without a tool parser: leave tool_choice out.")
    offered = _offered(request)
    if isinstance(choice, bodies.NamedTool):
        named = [each for each in offered if each.name == choice.function.name]
        return Calling.NAMED, named
    if choice == "required":
        return Calling.REQUIRED, offered
    # Once a function has answered, so does the model.
    return (Calling.AUTO if offered and _last_role(said) != "tool" else None), offered


def _offered(request: bodies.ChatRequest | bodies.TokenizeChat) -> list[template.Function]:
    if not request.tools:
        return []
    functions = (tool.function for tool in request.tools)
    return [template.Function(each.name, each.description, each.parameters) for each in functions]


def _chat_prompt(
    request: bodies.ChatRequest, turns: Sequence[template.Message], last: str, served: Served
) -> Prompt:
    hidden = request.tool_choice == "none" and served.has("exclude-tools-when-tool-choice-none")
    ids = template.encode(
        turns,
        () if hidden else _offered(request),
        opens_answer=request.add_generation_prompt,
        goes_on=request.continue_final_message,
    )
    return Prompt(len(ids), last, tuple(ids))


def tokenized(request: bodies.TokenizePrompt | bodies.TokenizeChat, asked: Any) -> list[int]:
    """The token ids asked for. Raises Refusal."""
    if isinstance(request, bodies.TokenizePrompt):
        return encoding.encode(request.prompt)
    return template.encode(
        [messages.turn(message) for message in asked["messages"]],
        _offered(request),
        opens_answer=request.add_generation_prompt,
        goes_on=request.continue_final_message,
    )


def parse_completion(raw: bytes, content_type: str, served: Served) -> Call:
    """A text completion request. Raises Refusal."""
    request = validate(bodies.CompletionRequest, load(raw, content_type))
    check_model(request.model, served)
    if request.suffix is not None:
        raise refusals.Refusal("This model takes no suffix: leave it out.", param="suffix")
    found = prompts(request.prompt, served)
    limit, prompt_only = request.max_tokens, False
    _check_limit(limit, "max_tokens", served)
    if limit == 0 and request.echo:
        limit, prompt_only = 1, True  # vLLM computes one token to echo a prompt, and counts it
    return call(
        request,
        served,
        prompts=found,
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
        check_length(prompt, served)
    wish = None if rest.get("calling") else guided.wish(request)
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
        tells_cached=served.has("enable-prompt-tokens-details"),
        **rest,
    )
    for prompt in prompts:
        rules.sampling(request, n, checked.limit_tokens(prompt, served))
    if n * len(prompts) > rules.MAX_N:
        message = f"{n} answers to {len(prompts)} prompts are more than {rules.MAX_N} at once."
        raise refusals.Refusal(message)
    try:
        rules.engine(request, logprobs, [prompt.ids for prompt in prompts])
        if wish is not None:
            checked = dataclasses.replace(checked, write=guided.write(wish))
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


def prompts(prompt: object, served: Served) -> tuple[Prompt, ...]:
    """The prompts of a text completion: a text, token ids, or a list of either. Raises Refusal."""
    if isinstance(prompt, str):
        found = [_text_prompt(prompt, served)]
    elif isinstance(prompt, list) and prompt and isinstance(prompt[0], int):
        found = [_id_prompt(prompt)]
    elif isinstance(prompt, list):
        found = [
            _text_prompt(item, served) if isinstance(item, str) else _id_prompt(item)
            for item in prompt
        ]
    else:
        found = []
    if not found or any(each.tokens == 0 for each in found):
        raise rules.no_prompt()
    return tuple(found)


def _text_prompt(text: str, served: Served) -> Prompt:
    check_characters(len(text), served)
    ids = encoding.encode(text)
    return Prompt(len(ids), text, tuple(ids))


def _id_prompt(ids: list[int]) -> Prompt:
    return Prompt(len(ids), encoding.decode(ids), tuple(ids))


def check_length(prompt: Prompt, served: Served) -> None:
    """Refuse a prompt of more tokens than the model takes. Raises Refusal."""
    if prompt.tokens > served.max_model_tokens:
        raise refusals.too_long(prompt.tokens, served.max_model_tokens)


def check_characters(characters: int, served: Served) -> None:
    """Refuse a text that must be too long before it is encoded. Raises Refusal.

    This bounds the time that encoding takes by the model's length.
    """
    most = served.max_model_tokens
    if characters > most * LONGEST_TOKEN_CHARACTERS:
        raise refusals.too_many_characters(characters, most)
    if characters > most * encoding.max_token_characters():
        raise refusals.too_long(most + 1, most)
