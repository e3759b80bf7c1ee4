"""OpenAI's responses API as SGLang 0.5 offers it: what it takes, and what it makes of it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from servelab.engine.calls import Calling, Prompt, Served
from servelab.engine.surfaces import openai
from servelab.engine.surfaces.refusing import Refusal
from servelab.engine.surfaces.sglang import asking, calling, messages, refusals, rules
from servelab.engine.surfaces.sglang.asking import Asked
from servelab.engine.surfaces.sglang.messages import Body
from servelab.engine.surfaces.sglang.rules import Sampling
from servelab.engine.text import template, writing

STORE = "enable-response-store"
LOGPROBS = "message.output_text.logprobs"
TEMPERATURE = 0.7
# Kept free of the budget for tokens that the engine adds.
HEADROOM_TOKENS = 2
Tier = Literal["none", "minimal", "low", "medium", "high", "xhigh", "ultra", "max"]
ToolType = Literal[
    "function",
    "web_search",
    "web_search_preview",
    "code_interpreter",
    "file_search",
    "image_generation",
    "computer_use_preview",
    "local_shell",
    "shell",
    "mcp",
    "custom",
    "namespace",
    "tool_search",
]
ECHOED_EFFORTS = ("minimal", "low", "medium", "high")
_MESSAGES = TypeAdapter(list[messages.Message])


class Tool(Body):
    model_config = ConfigDict(extra="allow")

    type: ToolType
    name: str | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool = False
    tools: list[dict[str, Any]] | None = None
    defer_loading: bool | None = None
    format: dict[str, Any] | None = None

    @model_validator(mode="after")
    def named(self) -> "Tool":
        """A function has a name."""
        if self.type == "function" and not self.name:
            raise ValueError("a function needs a name")
        return self


class Reasoning(Body):
    effort: Tier | None = "medium"
    summary: Literal["auto", "concise", "detailed"] | None = None


class PlainFormat(Body):
    type: Literal["text", "json_object"]


class SchemaFormat(Body):
    type: Literal["json_schema"]
    name: str
    json_schema: dict[str, Any] = Field(alias="schema")
    description: str | None = None
    strict: bool | None = None


class Text(Body):
    format: PlainFormat | SchemaFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class Request(Body, openai.ResponseWishes):
    metadata: dict[str, Any] | None = None
    model: str | None = None
    parallel_tool_calls: bool | None = True
    reasoning: Reasoning | None = None
    text: Text | None = None
    tools: list[Tool] = Field(default_factory=list)
    priority: int = 0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    stop: str | list[str] | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None

    @property
    def told_logprobs(self) -> bool:
        """Whether the answer tells probabilities."""
        return LOGPROBS in (self.include or ())

    @property
    def choice(self) -> str | dict[str, Any]:
        """``tool_choice``, as far as it can be honoured."""
        chosen = self.tool_choice
        if not isinstance(chosen, dict):
            return chosen
        name = chosen.get("name") or (chosen.get("function") or {}).get("name")
        if chosen.get("type") in ("function", "custom") and name:
            return {"type": chosen["type"], "name": name}
        return "auto"

    @property
    def schema_(self) -> Any:
        """The schema that the text must meet, if any."""
        form = self.text.format if self.text is not None else None
        if isinstance(form, SchemaFormat):
            return form.json_schema
        plain = form is None or form.type == "text"
        return None if plain else {"type": "object"}


def check(request: Request, served: Served) -> None:
    """What is looked at before the input is. Raises Refusal."""
    if any(tool.type == "shell" for tool in request.tools):
        raise refusals.responses("Shell tools are not supported by this model", "tools")
    stores = served.has(STORE)
    if not stores and request.previous_response_id is not None:
        raise refusals.no_store("previous_response_id")
    if not stores and request.background:
        raise refusals.no_store("background")
    if request.background and not request.store:
        raise refusals.responses("background=true requires store=true.", "store")
    model, known = request.model, served.name
    if model is not None and model != known and not model.startswith(f"{known}:"):
        raise refusals.responses(f"The model '{model}' does not exist", "model", status=404)
    callable_tools = [tool for tool in request.tools if tool.type in ("function", "custom")]
    if request.tool_choice == "required" and not callable_tools:
        raise refusals.responses(
            'tool_choice="required" requires at least one tool with type="function" or '
            'type="custom"; other built-in tool types cannot be forced.'
        )
    choice = request.choice
    if isinstance(choice, dict) and choice["name"] not in [tool.name for tool in callable_tools]:
        message = f"Tool {choice['name']!r} is not declared in tools"
        raise refusals.responses(message, "tool_choice")
    if request.stream and request.told_logprobs:
        raise refusals.responses("logprobs are not supported in streaming mode", "logprobs")


@dataclass(frozen=True, slots=True)
class Read:
    """A request whose input could be read. ``calls``: a call may be in the answer's text."""

    ids: tuple[int, ...]
    functions: Sequence[template.Function]
    calling: Calling | None
    write: writing.Write | None


def read(request: Request, history: Sequence[Mapping[str, Any]], served: Served) -> Read:
    """The conversation, and whether the answer is a call. Raises Refusal."""
    if request.model is None or request.stream is None:
        raise refusals.responses("model must be a name, and stream true or false.")
    said = _turns(request, history)
    if not said:
        raise refusals.responses("input must hold a message.")
    functions = [
        template.Function(tool.name or "", tool.description, tool.parameters)
        for tool in request.tools
        if tool.type in ("function", "custom")
    ]
    chosen = request.choice
    choice = f":{chosen['name']}" if isinstance(chosen, dict) else chosen
    formed = request.schema_ is not None
    if formed and functions and choice not in ("auto", "none"):
        raise refusals.responses(
            "Cannot combine tool calls with constrained decoding (text.format / regex / ebnf / "
            "structural_tag / json_schema). Remove one."
        )
    answered = said[-1].role == "tool"
    told, write = calling.wanted(choice, functions, served, answered=answered, formed=formed)
    try:
        ids = messages.tokens(said, () if choice == "none" else functions)
    except Refusal as refusal:
        raise refusals.responses(str(refusal)) from None
    return Read(tuple(ids), functions, told, write)


def asked(request: Request, found: Read, rid: str, served: Served) -> Asked:
    """The request, checked. Raises Refusal; a stream has begun when the real one finds it."""
    limit = request.max_output_tokens
    schema = request.schema_
    sampling = Sampling(
        max_tokens=None if limit is None else limit - HEADROOM_TOKENS,
        temperature=TEMPERATURE if request.temperature is None else request.temperature,
        top_p=1.0 if request.top_p is None else request.top_p,
        top_k=-1 if request.top_k is None else request.top_k,
        min_p=request.min_p or 0.0,
        repetition_penalty=1.0
        if request.repetition_penalty is None
        else (request.repetition_penalty),
        frequency_penalty=request.frequency_penalty,
        presence_penalty=request.presence_penalty,
        stop=request.stop,
        grammars={} if schema is None else {"json_schema": schema},
    )
    rules.priority(request.priority, served)
    prompt = Prompt(len(found.ids), "", found.ids)
    logprobs = (request.top_logprobs or 0) if request.told_logprobs else None
    stream = bool(request.stream)
    call = asking.checked(sampling, (prompt,), served, chat=True, stream=stream, logprobs=logprobs)
    if found.write is not None:
        call = call._replace(write=found.write, calling=found.calling)
    return Asked(call, request.model or "", (rid,))


def _turns(
    request: Request, history: Sequence[Mapping[str, Any]]
) -> list[messages.GenericMessage | messages.UserMessage]:
    """The conversation. Raises Refusal."""
    said: list[dict[str, Any]] = []
    if request.instructions:
        said.append({"role": "system", "content": request.instructions})
    for item in (*history, *items(request)):
        said += _turn(item)
    try:
        return list(_MESSAGES.validate_python(said))
    except ValidationError as error:
        raise refusals.responses(str(error)) from None


def items(request: Request) -> Sequence[Mapping[str, Any]]:
    """The input as a list."""
    if isinstance(request.input, str):
        return [{"role": "user", "content": request.input}]
    return request.input


def _turn(item: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    kind = item.get("type")
    if kind in ("function_call", "custom_tool_call"):
        given = item.get("arguments", item.get("input"))
        text = given if isinstance(given, str) else json.dumps(given or {})
        function = {"name": item.get("name"), "arguments": text}
        yield {"role": "assistant", "tool_calls": [{"function": function}]}
    elif kind in ("function_call_output", "custom_tool_call_output"):
        given = item.get("output", "")
        if isinstance(given, list):
            given = "".join(str(part.get("text", "")) for part in given if isinstance(part, dict))
        yield {"role": "tool", "content": given}
    elif kind in (None, "message"):
        content = item.get("content")
        if isinstance(content, list):
            content = [_part(part) for part in content]
        role = "system" if item.get("role") == "developer" else item.get("role")
        yield {"role": role, "content": content}
    elif kind != "reasoning":
        raise refusals.responses(f"Unsupported Responses API input item type: {kind!r}")


def _part(part: Any) -> Any:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in ("input_text", "output_text"):
        return {"type": "text", "text": part.get("text", "")}
    if kind == "input_image":
        return {"type": "image_url", "image_url": {"url": str(part.get("image_url"))}}
    return part
