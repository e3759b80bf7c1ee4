"""The native route ``/generate``: what it takes, and what it checks."""

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from servelab.engine.calls import Prompt, Served
from servelab.engine.exchange import Request
from servelab.engine.surfaces.refusing import Refusal, Shape
from servelab.engine.surfaces.sglang import asking, bodies, refusals, rules
from servelab.engine.surfaces.sglang.asking import Asked
from servelab.engine.surfaces.sglang.rules import Sampling


def parse(came: Request) -> bodies.GenerateRequest:
    """A native request whose schema is met. Raises Refusal."""
    request = asking.native(bodies.GenerateRequest, came)
    given = request.sampling_params
    for params in [given] if isinstance(given, dict) else given or ():
        _contract(params)
    return request


def _contract(params: dict[str, Any]) -> bodies.NativeSampling:
    try:
        return bodies.NativeSampling.model_validate(params)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise Refusal(_told(name, first["type"], first["msg"]), shape=Shape.BARE) from None


def _told(name: str, kind: str, message: str) -> str:
    if kind == "extra_forbidden":
        known = ", ".join(f"`{field}`" for field in bodies.NativeSampling.model_fields)
        return f"unknown field `{name}`, expected one of {known}"
    return f"{name}: {message}"


def asked(request: bodies.GenerateRequest, served: Served) -> Asked:
    """The request, checked. Raises Refusal in the native shape."""
    try:
        return _asked(request, served)
    except Refusal as refusal:
        raise refusals.native(refusal) from None


def _asked(request: bodies.GenerateRequest, served: Served) -> Asked:
    text, ids = request.text, request.input_ids
    if text is None and ids is None and request.input_embeds is None:
        raise Refusal("Either text, input_ids or input_embeds should be provided.")
    if request.input_embeds is not None:
        raise Refusal(
            "input_embeds is provided while disable_radix_cache is False. Please add "
            "`--disable-radix-cache` when you launch the server if you want to use input_embeds "
            "as inputs."
        )
    if request.lora_path:
        raise Refusal("LoRA adapter was requested, but LoRA is not enabled.")
    rules.priority(request.priority, served)
    prompts, alone = _prompts(text, ids)
    sampling = _sampling(request.sampling_params)
    logprob = _first(request.return_logprob)
    top = _first(request.top_logprobs_num) or 0
    call = asking.checked(
        sampling,
        prompts,
        served,
        chat=False,
        priority=rules.turn(request.priority, served),
        stream=request.stream,
        logprobs=top if logprob else None,
    )
    rid = request.rid
    rids = (rid,) if isinstance(rid, str) else tuple(rid or ())
    if isinstance(rid, str) and not alone:
        rids = tuple(f"{rid}_{index}" for index in range(len(prompts)))
    start = _first(request.logprob_start_len)
    return Asked(
        call,
        served.name,
        rids,
        alone=alone and call.n == 1,
        prompt_ids=request.return_prompt_token_ids,
        text_in_logprobs=request.return_text_in_logprobs,
        logprob_start=-1 if start is None else start,
    )


def _first(value: Any) -> Any:
    if isinstance(value, list):
        return value[0] if value else None
    return value


def _prompts(
    text: str | Sequence[str] | None, ids: Sequence[Any] | None
) -> tuple[tuple[Prompt, ...], bool]:
    """Token ids go before text, as the real engine takes them."""
    if ids is not None:
        if not ids or any(isinstance(each, list) and not each for each in ids):
            raise Refusal("input_ids cannot be empty.")
        if isinstance(ids[0], int):
            return (asking.id_prompt(ids),), True
        return tuple(asking.id_prompt(each) for each in ids), False
    if isinstance(text, str):
        return (asking.text_prompt(text),), True
    if not text:
        raise Refusal("texts cannot be empty and tokenizer must be initialized")
    return tuple(asking.text_prompt(each) for each in text), False


def _sampling(given: list[dict[str, Any]] | dict[str, Any] | None) -> Sampling:
    params = _contract(_first(given) or {})
    grammars = ("json_schema", "regex", "ebnf", "structural_tag")
    told = {
        name: getattr(params, name)
        for name in (
            *("temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty"),
            *("repetition_penalty", "n", "ignore_eos", "no_stop_trim"),
        )
        if getattr(params, name) is not None
    }
    if told.get("top_k") == 1 << 30:
        told["top_k"] = -1
    return Sampling(
        max_tokens=params.max_new_tokens,
        min_tokens=params.min_new_tokens or 0,
        stop=params.stop,
        stop_token_ids=params.stop_token_ids,
        stop_regex=params.stop_regex,
        grammars={name: getattr(params, name) for name in grammars if getattr(params, name)},
        logit_bias=params.logit_bias or None,
        seed=params.sampling_seed,
        **told,
    )
