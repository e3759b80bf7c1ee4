"""OpenAI's responses API as vLLM 0.33 offers it, without a store and without tools of its own."""

from collections.abc import Mapping, Sequence
from typing import Any

from servelab.engine.calls import Call, Calling, Prompt, Served
from servelab.engine.surfaces.vllm import (
    bodies,
    extensions,
    prompting,
    protocol,
    reading,
    refusals,
    responses_bodies,
    responses_items,
    thinking,
    tools,
)
from servelab.engine.surfaces.vllm.refusals import Refusal
from servelab.engine.text import template, thoughts

# Fields of a request that its answer repeats.
REPEATED = (
    "instructions",
    "metadata",
    "max_tool_calls",
    "previous_response_id",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "text",
    "truncation",
    "user",
)


# vLLM samples by none between this and 0, which is the likeliest token always, and tells so.
LEAST_TEMPERATURE = 0.01


def parse(raw: bytes, content_type: str, served: Served) -> tuple[Call, dict[str, Any]]:
    """A responses request, and the answer's fields that follow from it. Raises Refusal."""
    request = reading.validate(responses_bodies.ResponsesRequest, reading.load(raw, content_type))
    protocol.check_model(request.model, served)
    if request.store and request.background:
        message = "This engine keeps no responses: leave background out."
        raise Refusal(message, kind=refusals.INVALID, param="background")
    if request.previous_response_id is not None:
        raise unknown(request.previous_response_id)
    extensions.media(request)
    limit = request.max_output_tokens
    if limit is not None and limit > served.max_model_tokens:
        message = f"max_output_tokens must be at most {served.max_model_tokens}, not {limit}."
        raise Refusal(message, param="max_output_tokens")
    turns = responses_items.turns(request.instructions, request.input)
    functions = _functions(request)
    if not turns:
        raise Refusal("input must hold at least one item.")
    if request.truncation == "disabled":
        prompting.check_characters(sum(len(turn.content) for turn in turns), served)
    whole = template.encode(turns, functions)
    if request.truncation == "auto":
        whole = whole[-(served.max_model_tokens - 1) :]
    ids = tuple(whole)
    prompt = Prompt(len(ids), ids=ids)
    if prompt.tokens == served.max_model_tokens:
        message = f"The input takes {prompt.tokens} tokens, which leaves none for an answer."
        raise Refusal(message, kind=refusals.INVALID, param="input")
    told = request.top_logprobs if _tells_logprobs(request) else None
    calling, called = _calling(request, functions, turns, served)
    call = protocol.call(
        _sampling(request),
        served,
        prompts=(prompt,),
        n=1,
        limit=limit,
        logprobs=told,
        prompt_text=request.enable_response_messages,
        chat=True,
        calling=calling,
        write=protocol.write_call(called, served) if calling else None,
        thinks=_thinks(request, served),
    )
    return call, _fields(request, call, call.limit_tokens(prompt, served))


def _thinks(request: responses_bodies.ResponsesRequest, served: Served) -> thoughts.Thinks | None:
    effort = request.reasoning and request.reasoning["effort"]
    return thinking.wanted(request, served, effort)


def _sampling(request: responses_bodies.ResponsesRequest) -> bodies.Sampling:
    """What it has in common with a chat, in the words of one. Raises Refusal."""
    shared = {name: getattr(request, name) for name in bodies.Wishes.model_fields}
    shared["stop"] = request.stop or None
    return bodies.Sampling.model_construct(**shared, response_format=_format(request))


def unknown(response_id: str) -> Refusal:
    """No such response is kept."""
    message = f"There is no response {response_id!r}: this engine keeps none."
    return Refusal(message, status=404, kind=refusals.INVALID, param="response_id")


def _functions(request: responses_bodies.ResponsesRequest) -> list[template.Function]:
    """Its tools, as far as they are functions; the name of one in a namespace tells of that."""
    found: list[template.Function] = []
    for tool in request.tools:
        inner = tool["tools"] if tool["type"] == "namespace" else [tool]
        prefix = f"{tool['name']}__" if tool["type"] == "namespace" else ""
        found += [
            template.Function(prefix + each["name"], each["description"], each["parameters"])
            for each in inner
            if each["type"] == "function"
        ]
    return found


def _calling(
    request: responses_bodies.ResponsesRequest,
    functions: Sequence[template.Function],
    turns: Sequence[template.Message],
    served: Served,
) -> tuple[Calling | None, Sequence[template.Function]]:
    """Whether the answer is a call, and of what; without a parser text is never taken for one."""
    choice = request.tool_choice
    if choice == "none" or not functions or not tools.parser(served):
        return None, ()
    if isinstance(choice, Mapping):
        named = [each for each in functions if each.name == choice.get("name")]
        return (Calling.NAMED if named else None), named
    if choice == "required":
        return Calling.REQUIRED, functions
    answered = bool(turns) and turns[-1].role == "tool"
    return (None if answered else Calling.AUTO), functions


def _format(request: responses_bodies.ResponsesRequest) -> bodies.ResponseFormat | None:
    """The format of the text, in the words of a chat. Raises Refusal."""
    told = request.text and request.text["format"]
    if told is None:
        return None
    if request.structured_outputs is not None:
        message = "structured_outputs and text.format exclude each other."
        raise Refusal(message, param="structured_outputs")
    if told["type"] == "json_object":
        return bodies.ResponseFormat(type="json_object")
    if told["type"] == "text":
        return None
    wanted = bodies.JsonSchema(name=told["name"], schema=told["schema"])
    return bodies.ResponseFormat(type="json_schema", json_schema=wanted)


def _fields(
    request: responses_bodies.ResponsesRequest, call: Call, limit_tokens: int
) -> dict[str, Any]:
    """The fields that are the same from the first event to the last. Raises Refusal."""
    fields = {name: getattr(request, name) for name in REPEATED}
    if request.background is None or request.truncation is None:
        raise Refusal("background and truncation must not be null.")  # found in the answer
    options = request.prompt_cache_options
    temperature = 1.0 if request.temperature is None else request.temperature
    if 0 < temperature < LEAST_TEMPERATURE:
        temperature = LEAST_TEMPERATURE
    top_p = 1.0 if request.top_p is None or not temperature else request.top_p
    return fields | {
        "object": "response",
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "temperature": temperature,
        "tool_choice": request.tool_choice,
        "tools": request.tools,
        "top_p": top_p,
        "background": bool(request.background),
        "max_output_tokens": limit_tokens,
        "prompt": None,
        "prompt_cache_options": options and options.model_dump(),
        "top_logprobs": request.top_logprobs if _tells_logprobs(request) else None,
        "presence_penalty": request.presence_penalty or 0.0,
        "frequency_penalty": request.frequency_penalty or 0.0,
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "input_messages": None,
        "output_messages": None,
    }


def _tells_logprobs(request: responses_bodies.ResponsesRequest) -> bool:
    return "message.output_text.logprobs" in (request.include or ())
