"""From a body to a checked request, as SGLang 0.5 checks it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from servelab.engine.calls import Call, Calling, Prompt, Served
from servelab.engine.exchange import Request
from servelab.engine.surfaces.refusing import Refusal
from servelab.engine.surfaces.sglang import bodies, messages, refusals, rules
from servelab.engine.surfaces.sglang import calling as calls
from servelab.engine.surfaces.sglang.rules import Sampling
from servelab.engine.text import encoding, writing

BodyT = TypeVar("BodyT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Asked:
    """A checked request, and what its answer tells beside the text.

    ``rids`` are names the client gave. ``alone``: one prompt and one answer to it, not a list of
    one. ``parsed``: the text is looked through for calls of functions.
    """

    call: Call
    model: str = bodies.DEFAULT_MODEL
    rids: tuple[str, ...] = ()
    alone: bool = True
    meta_info: bool = False
    prompt_ids: bool = False
    text_in_logprobs: bool = False
    logprob_start: int = -1
    parsed: bool = False


def load(raw: bytes) -> Any:
    """A body as JSON. Raises Refusal."""
    if not raw:
        raise refusals.malformed("body", "Field required")
    try:
        return json.loads(raw, parse_int=_number, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise refusals.malformed(f"body.{error.pos}", "JSON decode error") from None
    except (ValueError, RecursionError):
        raise refusals.malformed("body", "JSON decode error") from None


def _number(text: str) -> int | float:
    """Numbers beyond 64 bits are read as fractions are."""
    value = int(text) if len(text) < 25 else float(text)
    return value if rules.INT64_MIN <= value < 2**64 else float(text)


def _constant(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def native(kind: type[BodyT], request: Request) -> BodyT:
    """The body of one of SGLang's own routes. Raises Refusal."""
    given = request.content_type.lower().split(";", maxsplit=1)[0].strip()
    if request.body and given not in ("", "application/json"):
        raise refusals.malformed("body", "Input should be a dictionary")
    return validate(kind, load(request.body))


def openai(kind: type[BodyT], raw: bytes, content_type: str) -> BodyT:
    """The body of one of OpenAI's routes. Raises Refusal."""
    if content_type.lower().split(";", maxsplit=1)[0] != "application/json":
        raise refusals.malformed("header.content-type", "only 'application/json' is allowed")
    return validate(kind, load(raw))


def validate(kind: type[BodyT], document: Any) -> BodyT:
    """A document as its model. Raises Refusal."""
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        raise refusals.schema(error.errors(include_url=False, include_context=False)) from None


def chat(request: bodies.ChatRequest, served: Served) -> Asked:
    """A chat. Raises Refusal."""
    limit = served.max_model_tokens
    rules.chat(request, limit)
    calling, write = _calling(request, served)
    functions = () if request.tool_choice == "none" else calls.functions(request.tools)
    told = messages.tokens(request.messages, functions)
    ids = tuple(told if request.input_ids is None else request.input_ids)
    _lora(request.model, request.lora_path, served)
    sampling = Sampling(
        max_tokens=request.max_completion_tokens or request.max_tokens,
        temperature=_or(request.temperature, 1.0),
        top_p=_or(request.top_p, 1.0),
        top_k=_or(request.top_k, -1),
        min_p=_or(request.min_p, 0.0),
        repetition_penalty=_or(request.repetition_penalty, 1.0),
        grammars=_grammars(request),
        **_common(request),
    )
    prompt = Prompt(max(1, len(ids)), "", ids)
    logprobs = (request.top_logprobs or 0) if request.logprobs else None
    call = _call(request, sampling, (prompt,), served, chat=True, logprobs=logprobs)
    if write is not None:
        call = call._replace(write=write, calling=calling if served.has(calls.PARSER) else None)
    return Asked(
        call,
        request.model,
        _rids(request.rid),
        meta_info=request.return_meta_info,
        prompt_ids=request.return_prompt_token_ids or request.return_token_ids,
        parsed=bool(functions) and served.has(calls.PARSER),
    )


def _calling(
    request: bodies.ChatRequest, served: Served
) -> tuple[Calling | None, writing.Write | None]:
    """Whether the answer is a call, and how it is written. Raises Refusal."""
    chosen = request.tool_choice
    choice = f":{chosen.function.name}" if isinstance(chosen, bodies.ToolChoice) else chosen
    formed = bool(_grammars(request))
    if formed and request.tools and choice not in ("auto", "none"):
        raise Refusal(
            "tool_choice 'required' or a named tool cannot be combined with response_format, "
            "regex, or ebnf: the tool-call constraint and the output constraint cannot both be "
            "honored.",
            kind=refusals.CONVERSION,
        )
    answered = request.messages[-1].role == "tool"
    known = calls.functions(request.tools)
    return calls.wanted(choice, known, served, answered=answered, formed=formed)


def completion(request: bodies.CompletionRequest, served: Served) -> Asked:
    """A text completion. Raises Refusal."""
    prompt = request.prompt
    if not prompt or (isinstance(prompt, list) and all(not each for each in prompt)):
        raise Refusal("Prompt cannot be empty")
    _conversion(request)
    prompts = _prompts(prompt)
    _lora(request.model, request.lora_path, served)
    sampling = Sampling(
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        top_p=request.top_p,
        top_k=request.top_k,
        min_p=request.min_p,
        repetition_penalty=request.repetition_penalty,
        grammars=_grammars(request, request.json_schema),
        **_common(request),
    )
    call = _call(
        request, sampling, prompts, served, chat=False, logprobs=request.logprobs, echo=request.echo
    )
    return Asked(
        call,
        request.model,
        _rids(request.rid),
        alone=len(prompts) == 1 and request.n == 1,
        prompt_ids=request.return_token_ids,
    )


def _conversion(request: bodies.CompletionRequest) -> None:
    try:
        rules.schema_given(request.response_format)
    except Refusal as refusal:
        raise Refusal(str(refusal), kind=refusals.CONVERSION) from None


def _or(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def _common(request: bodies.Common) -> dict[str, Any]:
    return {
        "min_tokens": request.min_tokens,
        "frequency_penalty": request.frequency_penalty,
        "presence_penalty": request.presence_penalty,
        "n": request.n,
        "stop": request.stop,
        "stop_token_ids": request.stop_token_ids,
        "stop_regex": request.stop_regex,
        "ignore_eos": request.ignore_eos,
        "no_stop_trim": request.no_stop_trim,
        "logit_bias": request.logit_bias,
        "seed": request.seed,
    }


def _grammars(request: bodies.Common, schema: str | None = None) -> dict[str, Any]:
    """What the answer must be, by kind: one at most may be given."""
    chosen = request.response_format
    given: dict[str, Any] = {"json_schema": schema, "regex": request.regex, "ebnf": request.ebnf}
    if isinstance(chosen, bodies.ResponseFormat):
        if chosen.type == "json_object":
            given["json_schema"] = {"type": "object"}
        elif chosen.json_schema is not None:
            given["json_schema"] = chosen.json_schema.json_schema
    elif chosen is not None:
        given["structural_tag"] = chosen.model_dump()
    return {name: value for name, value in given.items() if value}


def _rids(rid: str | Sequence[str] | None) -> tuple[str, ...]:
    return (rid,) if isinstance(rid, str) else tuple(rid or ())


def _lora(model: str, path: object, served: Served) -> None:
    """``model:adapter`` asks for a LoRA adapter; there are none. Raises Refusal."""
    adapter = None
    if ":" in model and model != served.name:
        begins = model.startswith(f"{served.name}:")
        rest = model[len(served.name) + 1 :] if begins else model.split(":", 1)[1]
        adapter = rest.strip() or None
    if adapter is None and path:
        given = [path] if isinstance(path, str) else path
        adapter = next((each for each in given if each), None) if isinstance(given, list) else None
    if adapter is not None:
        raise Refusal(
            f"LoRA adapter '{adapter}' was requested, but LoRA is not enabled. Please launch the "
            "server with --enable-lora flag and preload adapters using --lora-paths or "
            "/load_lora_adapter endpoint."
        )


def text_prompt(text: str) -> Prompt:
    """A text. An empty one is a token too, that of the beginning."""
    return Prompt(max(1, encoding.count(text)), text)


def id_prompt(ids: Sequence[int]) -> Prompt:
    """Token ids."""
    return Prompt(max(1, len(ids)), encoding.decode(list(ids)), tuple(ids))


def _prompts(prompt: Any) -> tuple[Prompt, ...]:
    if isinstance(prompt, str):
        return (text_prompt(prompt),)
    if isinstance(prompt[0], int):
        return (id_prompt(prompt),)
    return tuple(text_prompt(p) if isinstance(p, str) else id_prompt(p) for p in prompt)


def _call(
    request: bodies.Common,
    sampling: Sampling,
    prompts: tuple[Prompt, ...],
    served: Served,
    **rest: Any,
) -> Call:
    options = request.stream_options
    rules.priority(request.priority, served)
    call = checked(
        sampling,
        prompts,
        served,
        priority=rules.turn(request.priority, served),
        stream=request.stream,
        include_usage=bool(options and options.include_usage),
        continuous_usage=bool(options and options.continuous_usage_stats),
        return_token_ids=request.return_token_ids,
        **rest,
    )
    if sampling.n == 0:
        # The real server runs the request and fails at the answer's counts.
        raise Refusal("range() arg 3 must not be zero", kind=refusals.CONVERSION)
    return call


def checked(sampling: Sampling, prompts: tuple[Prompt, ...], served: Served, **rest: Any) -> Call:
    """The call, if lengths and sampling are in bounds. Raises Refusal."""
    limit = served.max_model_tokens
    for prompt in prompts:
        rules.lengths(prompt.tokens, sampling.max_tokens, limit)
    rules.sampling(sampling)
    rules.answers(sampling.n * len(prompts))
    longest = max(prompt.tokens for prompt in prompts)
    # The real one keeps the last place of the context, and of what is left, free.
    room = max(1, limit - longest - 2)
    wanted = room if sampling.max_tokens is None else max(1, sampling.max_tokens)
    call = Call(
        chat=rest.pop("chat"),
        prompts=prompts,
        n=max(1, sampling.n),
        max_tokens=min(wanted, max(1, limit - longest)),
        min_tokens=sampling.min_tokens,
        ignore_eos=sampling.ignore_eos,
        seed=sampling.seed,
        stop=sampling.stops,
        stop_token_ids=frozenset(sampling.stop_token_ids or ()),
        include_stop=sampling.no_stop_trim,
        write=rules.write(sampling.grammars),
    )
    return call._replace(**rest)
