"""OpenAI's responses API as vLLM 0.33 offers it, without a store and without tools of its own."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from servelab.engine.calls import Call, Calling, Prompt, Served
from servelab.engine.surfaces.vllm import bodies, messages, protocol, refusals
from servelab.engine.surfaces.vllm.refusals import Refusal
from servelab.engine.text import template, writing

Penalty = Annotated[float, Field(ge=-2.0, le=2.0)]
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


class ResponsesRequest(bodies.Sampling):
    input: str | list[dict[str, Any]]
    background: bool | None = False
    include: list[str] | None = None
    instructions: str | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    metadata: dict[str, str] | None = None
    parallel_tool_calls: bool | None = True
    previous_response_id: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: Literal["in_memory", "24h"] | None = None
    reasoning: dict[str, Any] | None = None
    safety_identifier: str | None = None
    service_tier: Literal["auto", "default", "flex", "scale", "priority"] = "auto"
    store: bool | None = True
    text: dict[str, Any] | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] = "auto"
    tools: list[dict[str, Any]] = Field(default_factory=list)
    top_logprobs: bodies.Count = 0
    truncation: Literal["auto", "disabled"] | None = "disabled"
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None

    @model_validator(mode="before")
    @classmethod
    def as_it_came(cls, data: Any) -> Any:
        """The checks that come before the schema. Raises Refusal."""
        return _checked(data) if isinstance(data, dict) else data


def _checked(body: dict[str, Any]) -> dict[str, Any]:
    choice = body.get("tool_choice", "auto")
    named = isinstance(choice, Mapping) and choice.get("type") in ("function", "custom")
    if not body.get("tools"):
        if choice == "required" or named:
            raise Refusal("tool_choice needs tools.", param="tool_choice")
        if choice in ("auto", "none"):
            body = body | {"tool_choice": "none"}
    elif named and choice.get("name") not in [
        tool.get("name") for tool in body["tools"] if isinstance(tool, Mapping)
    ]:
        raise Refusal("tool_choice names none of the tools.", param="tool_choice")
    if body.get("prompt") is not None:
        raise Refusal("prompt templates are not supported.", param="prompt")
    if body.get("background") and not body.get("store", True):
        raise Refusal("background needs store: true.", param="background")
    return body


def parse(raw: bytes, content_type: str, served: Served) -> tuple[Call, dict[str, Any]]:
    """A responses request, and the answer's fields that follow from it. Raises Refusal."""
    request = protocol.validate(ResponsesRequest, protocol.load(raw, content_type))
    protocol.check_model(request.model, served)
    if request.store and request.background:
        message = "This engine keeps no responses: leave background out."
        raise Refusal(message, kind=refusals.INVALID, param="background")
    if request.previous_response_id is not None:
        raise unknown(request.previous_response_id)
    limit = request.max_output_tokens
    if limit is not None and limit > served.max_model_tokens:
        message = f"max_output_tokens must be at most {served.max_model_tokens}, not {limit}."
        raise Refusal(message, param="max_output_tokens")
    turns, functions = _turns(request), _functions(request)
    protocol.check_characters(sum(len(turn.content) for turn in turns), served)
    ids = tuple(template.encode(turns, functions))
    prompt = Prompt(len(ids), ids=ids)
    if prompt.tokens == served.max_model_tokens:
        message = f"The input takes {prompt.tokens} tokens, which leaves none for an answer."
        raise Refusal(message, kind=refusals.INVALID, param="input")
    told = request.top_logprobs if "message.output_text.logprobs" in (request.include or ()) else 0
    calling, called = _calling(request, functions, turns, served)
    call = protocol.call(
        request.model_copy(update={"response_format": _format(request)}),
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


def unknown(response_id: str) -> Refusal:
    """No such response is kept."""
    message = f"There is no response {response_id!r}: this engine keeps none."
    return Refusal(message, status=404, kind=refusals.INVALID, param="response_id")


def _turns(request: ResponsesRequest) -> list[template.Message]:
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


def _functions(request: ResponsesRequest) -> list[template.Function]:
    """Its tools, as far as they are functions."""
    return [
        template.Function(
            str(tool.get("name", "")), tool.get("description"), tool.get("parameters")
        )
        for tool in request.tools
        if tool.get("type") == "function"
    ]


def _calling(
    request: ResponsesRequest,
    functions: Sequence[template.Function],
    turns: Sequence[template.Message],
    served: Served,
) -> tuple[Calling | None, Sequence[template.Function]]:
    """Whether the answer is a call, and of what; without a parser text is never taken for one."""
    choice = request.tool_choice
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


def _format(request: ResponsesRequest) -> bodies.ResponseFormat | None:
    """The format of the text, in the words of a chat. Raises Refusal."""
    told = (request.text or {}).get("format")
    if not isinstance(told, Mapping):
        return None
    if request.structured_outputs is not None:
        message = "structured_outputs and text.format exclude each other."
        raise Refusal(message, param="structured_outputs")
    if told.get("type") == "json_object":
        return bodies.ResponseFormat(type="json_object")
    schema = told.get("schema")
    if told.get("type") != "json_schema" or not isinstance(schema, dict):
        return None
    wanted = bodies.JsonSchema(name=str(told.get("name", "")), schema=schema)
    return bodies.ResponseFormat(type="json_schema", json_schema=wanted)


def _fields(request: ResponsesRequest, call: Call, limit_tokens: int) -> dict[str, Any]:
    """The fields that are the same from the first event to the last."""
    fields = {name: getattr(request, name) for name in REPEATED}
    return fields | {
        "object": "response",
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "temperature": 1.0 if request.temperature is None else request.temperature,
        "tool_choice": request.tool_choice,
        "tools": request.tools,
        "top_p": 1.0 if request.top_p is None else request.top_p,
        "background": bool(request.background),
        "max_output_tokens": limit_tokens,
        "prompt": None,
        "top_logprobs": call.logprobs,
        "presence_penalty": request.presence_penalty or 0.0,
        "frequency_penalty": request.frequency_penalty or 0.0,
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "input_messages": None,
        "output_messages": None,
    }
