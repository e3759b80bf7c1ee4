"""From a body to a checked request, as ``trtllm-serve`` checks it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from servelab.engine.calls import Call, Calling, Prompt
from servelab.engine.surfaces import fastapi, refusing
from servelab.engine.surfaces.refusing import Refusal
from servelab.engine.surfaces.tensorrt_llm import bodies, messages, refusals, rules
from servelab.engine.text import encoding, template, writing

BodyT = TypeVar("BodyT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the server was started with.

    ``chunked``: a prompt need not fit a batch. ``guided``: there is a backend that makes an answer
    be of a kind; without one a request's wish is dropped without a word. ``parses``: calls of
    functions are looked for in an answer's text.
    """

    limit_tokens: int
    batch_tokens: int
    chunked: bool = False
    guided: bool = False
    parses: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A checked request, and what its answer tells beside the text.

    ``echoed`` goes before a chat's answer; ``detokenize`` False tells ids instead of text.
    ``echoes_ids``: a prompt that is no text is to go before its answer, at which the server fails.
    ``forced``: the function whose arguments the answer is.
    """

    call: Call
    model: str
    echoed: str = ""
    detokenize: bool = True
    echoes_ids: bool = False
    forced: str | None = None


def parse(kind: type[BodyT], raw: bytes, content_type: str) -> BodyT:
    """A body as its model. Raises Refusal, or HttpError for JSON that cannot be read."""
    if not raw:
        raise refusals.schema([_error("missing", (), "Field required")])
    subtype = content_type.split(";", 1)[0].strip().lower().rpartition("/")[2]
    if subtype and subtype != "json" and not subtype.endswith("+json"):
        raise refusing.fault()
    try:
        document = json.loads(raw)
    except json.JSONDecodeError as error:
        raise refusals.schema([_error("json_invalid", (error.pos,), "JSON decode error")]) from None
    except (ValueError, RecursionError):
        raise fastapi.HttpError("There was an error parsing the body", 400) from None
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        raise refusals.schema(error.errors(include_url=False, include_context=False)) from None


def _error(kind: str, place: Sequence[int], message: str) -> dict[str, Any]:
    return {"type": kind, "loc": place, "msg": message, "input": None}


def chat(request: bodies.ChatRequest, settings: Settings) -> Asked:
    """A chat. Raises Refusal."""
    rules.chat(request, guided=settings.guided, parses=settings.parses)
    rules.sampling(request, request.max_completion_tokens)
    functions = [
        template.Function(tool.function.name, tool.function.description, tool.function.parameters)
        for tool in request.tools or ()
    ]
    ids = request.prompt_token_ids or messages.tokens(
        request.messages, functions, opens_answer=request.add_generation_prompt
    )
    last = request.messages[-1] if request.messages else None
    role = "assistant" if request.add_generation_prompt or last is None else last.role
    top = (request.top_logprobs or 0) if request.logprobs else None
    prompt = _truncated(Prompt(len(ids), "", tuple(ids)), request.truncate_prompt_tokens)
    call = checked(
        request,
        (prompt,),
        request.max_completion_tokens,
        settings,
        chat=True,
        logprobs=top,
        role=role,
    )
    echoed = last.text if request.echo and last is not None and last.role == role else ""
    answered = last is not None and last.role == "tool"
    calling, write, forced = _calling(request, functions, settings, answered=answered)
    if calling is not None:
        call = call._replace(calling=calling, write=write)
    return Asked(call, request.model, echoed, forced=forced)


def _calling(
    request: bodies.ChatRequest,
    functions: Sequence[template.Function],
    settings: Settings,
    *,
    answered: bool,
) -> tuple[Calling | None, writing.Write | None, str | None]:
    """Whether the answer is a call, how it is written, and whose arguments it is.

    The answer to a prompt that names the function already is nothing but the arguments.
    """
    chosen = request.tool_choice
    if isinstance(chosen, bodies.ToolChoice):
        named = next((each for each in functions if each.name == chosen.function.name), None)
        schema = None if named is None else named.parameters
        write = writing.by_schema({"type": "object", **(schema or {})})
        return Calling.NAMED, write, chosen.function.name
    formed = settings.guided and request.response_format is not None
    if chosen != "auto" or not functions or not settings.parses or answered or formed:
        return None, None, None
    return Calling.AUTO, writing.call(functions), None


def completion(request: bodies.CompletionRequest, settings: Settings) -> Asked:
    """A text completion. Raises Refusal."""
    rules.sampling(request, request.max_tokens)
    if not request.prompt and isinstance(request.prompt, list):
        raise Refusal("'prompt' must not be empty.")
    alone = isinstance(request.prompt, str) or isinstance(request.prompt[0], int)
    given: Sequence[Any] = [request.prompt] if alone else request.prompt
    prompts = tuple(_truncated(_prompt(each), request.truncate_prompt_tokens) for each in given)
    call = checked(
        request,
        prompts,
        request.max_tokens,
        settings,
        chat=False,
        logprobs=request.logprobs or None,
        echo=bool(request.echo),
    )
    return Asked(
        call,
        request.model,
        detokenize=request.detokenize,
        echoes_ids=call.echo and any(not isinstance(each, str) for each in given),
    )


def _prompt(given: Any) -> Prompt:
    if isinstance(given, str):
        return Prompt(max(1, encoding.count(given)), given)
    if not given:
        raise Refusal("a prompt of no tokens")
    return Prompt(len(given), encoding.decode(given), tuple(given))


def _truncated(prompt: Prompt, most: int | None) -> Prompt:
    """Its last tokens."""
    if most is None or prompt.tokens <= most:
        return prompt
    return Prompt(most, prompt.text, tuple(prompt.encoded()[-most:]))


def checked(
    request: bodies.Common,
    prompts: tuple[Prompt, ...],
    max_tokens: int | None,
    settings: Settings,
    **rest: Any,
) -> Call:
    """The call, if its lengths are in bounds. Raises Refusal."""
    rules.answers(request.n * len(prompts))
    for prompt in prompts:
        rules.lengths(
            prompt.tokens, settings.limit_tokens, settings.batch_tokens, chunked=settings.chunked
        )
    options = request.stream_options
    write = rules.write(request.response_format)
    stop = [request.stop] if isinstance(request.stop, str) else request.stop or []
    counted = options is not None and bool(options.include_usage)
    return Call(
        prompts=prompts,
        n=request.n,
        max_tokens=max_tokens,
        min_tokens=request.min_tokens,
        ignore_eos=request.ignore_eos,
        stream=bool(request.stream),
        include_usage=counted,
        continuous_usage=counted and options is not None and bool(options.continuous_usage_stats),
        seed=request.seed,
        stop=tuple(text for text in stop if text),
        stop_token_ids=frozenset(request.stop_token_ids or ()),
        include_stop=request.include_stop_str_in_output,
        write=write if settings.guided else None,
        **rest,
    )
