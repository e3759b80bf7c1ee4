"""OpenAI's responses API as vLLM 0.33 offers it, without a store and without tools of its own."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from servelab.engine.calls import Call, Calling, Prompt, Served
from servelab.engine.surfaces.vllm import (
    bodies,
    extensions,
    messages,
    prompting,
    protocol,
    reading,
    refusals,
    responses_bodies,
)
from servelab.engine.surfaces.vllm.refusals import Refusal
from servelab.engine.text import template, writing

# Fields of a request that its answer repeats.
REPEATED = (
    "instructions",
    "metadata",
    "max_tool_calls",
    "previous_response_id",
    "prompt_cache_options",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "text",
    "truncation",
    "user",
)


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
    turns, functions = _turns(request), _functions(request)
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
    told = request.top_logprobs if _tells_logprobs(request) else 0
    calling, called = _calling(request, functions, turns, served)
    call = protocol.call(
        _sampling(request),
        served,
        prompts=(prompt,),
        n=1,
        limit=limit,
        logprobs=told or None,
        chat=True,
        calling=calling,
        write=writing.call(called) if calling else None,
    )
    return call, _fields(request, call, call.limit_tokens(prompt, served))


def _sampling(request: responses_bodies.ResponsesRequest) -> bodies.Sampling:
    """What it has in common with a chat, in the words of one. Raises Refusal."""
    shared = {name: getattr(request, name) for name in bodies.Wishes.model_fields}
    shared["stop"] = request.stop or None
    return bodies.Sampling.model_construct(**shared, response_format=_format(request))


def unknown(response_id: str) -> Refusal:
    """No such response is kept."""
    message = f"There is no response {response_id!r}: this engine keeps none."
    return Refusal(message, status=404, kind=refusals.INVALID, param="response_id")


def _turns(request: responses_bodies.ResponsesRequest) -> list[template.Message]:
    """The conversation: what several items say of one turn is laid together. Raises Refusal."""
    said: list[dict[str, Any]] = []
    if request.instructions:
        said.append({"role": "system", "content": request.instructions})
    if isinstance(request.input, str):
        said.append({"role": "user", "content": request.input})
    else:
        for item in request.input:
            _add(said, item)
    return [messages.turn(message) for message in said]


def _add(said: list[dict[str, Any]], item: Mapping[str, Any]) -> None:
    kind = item.get("type", "message")
    if kind == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
        call = {"type": "function", "function": function}
        if said and said[-1]["role"] == "assistant":
            said[-1].setdefault("tool_calls", []).append(call)
        else:
            said.append({"role": "assistant", "tool_calls": [call]})
    elif kind == "function_call_output":
        said.append({"role": "tool", "content": item.get("output")})
    elif "role" in item:
        said.append({"role": item["role"], "content": item.get("content")})
    elif kind != "reasoning":
        raise Refusal(f"input must not hold items of type {kind}.", param="input")


def _functions(request: responses_bodies.ResponsesRequest) -> list[template.Function]:
    """Its tools, as far as they are functions."""
    return [
        template.Function(tool.name, tool.description, tool.parameters)
        for tool in request.tools
        if isinstance(tool, responses_bodies.FunctionTool)
    ]


def _calling(
    request: responses_bodies.ResponsesRequest,
    functions: Sequence[template.Function],
    turns: Sequence[template.Message],
    served: Served,
) -> tuple[Calling | None, Sequence[template.Function]]:
    """Whether the answer is a call, and of what; without a parser text is never taken for one."""
    choice = _plain(request.tool_choice)
    parses = served.has("enable-auto-tool-choice") and served.has("tool-call-parser")
    if choice == "none" or not functions or not parses:
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
    told = request.text.format if request.text else None
    if told is None:
        return None
    if request.structured_outputs is not None:
        message = "structured_outputs and text.format exclude each other."
        raise Refusal(message, param="structured_outputs")
    if isinstance(told, responses_bodies.ResponseFormatJSONObject):
        return bodies.ResponseFormat(type="json_object")
    if isinstance(told, responses_bodies.ResponseFormatText):
        return None
    wanted = bodies.JsonSchema(name=told.name, schema=told.json_schema)
    return bodies.ResponseFormat(type="json_schema", json_schema=wanted)


def _fields(
    request: responses_bodies.ResponsesRequest, call: Call, limit_tokens: int
) -> dict[str, Any]:
    """The fields that are the same from the first event to the last."""
    fields = {name: _plain(getattr(request, name)) for name in REPEATED}
    if request.background is None or request.truncation is None:
        raise Refusal("background and truncation must not be null.")  # found in the answer
    return fields | {
        "object": "response",
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "temperature": 1.0 if request.temperature is None else request.temperature,
        "tool_choice": _plain(request.tool_choice),
        "tools": [_plain(tool) for tool in request.tools],
        "top_p": 1.0 if request.top_p is None else request.top_p,
        "background": bool(request.background),
        "max_output_tokens": limit_tokens,
        "prompt": None,
        "top_logprobs": request.top_logprobs if _tells_logprobs(request) else None,
        "presence_penalty": request.presence_penalty or 0.0,
        "frequency_penalty": request.frequency_penalty or 0.0,
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "input_messages": None,
        "output_messages": None,
    }


def _plain(value: Any) -> Any:
    return value.model_dump(by_alias=True) if isinstance(value, BaseModel) else value


def _tells_logprobs(request: responses_bodies.ResponsesRequest) -> bool:
    return "message.output_text.logprobs" in (request.include or ())
