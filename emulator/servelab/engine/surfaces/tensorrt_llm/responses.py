"""OpenAI's responses API as TensorRT-LLM 1.3 offers it: what it takes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator

from servelab.engine.calls import Calling, Prompt
from servelab.engine.surfaces import openai, refusing
from servelab.engine.surfaces.refusing import Refusal
from servelab.engine.surfaces.tensorrt_llm import asking, bodies, messages, rules
from servelab.engine.surfaces.tensorrt_llm.asking import Asked, Settings
from servelab.engine.surfaces.tensorrt_llm.bodies import Body
from servelab.engine.text import template, writing


class Tool(Body):
    model_config = ConfigDict(extra="allow")

    type: str
    name: str | None = None

    @model_validator(mode="after")
    def named(self) -> "Tool":
        """A function has a name."""
        if self.type == "function" and self.name is None:
            raise ValueError("a function needs a name")
        return self

    def told(self) -> dict[str, Any]:
        """As answers repeat it."""
        given = self.model_dump()
        if self.type != "function":
            return given
        empty = dict.fromkeys(("name", "parameters", "strict", "type", "description"))
        return empty | given


class Reasoning(Body):
    model_config = ConfigDict(extra="allow")

    effort: Literal["none", "minimal", "low", "medium", "high"] | None = None
    generate_summary: Literal["auto", "concise", "detailed"] | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None


class Format(Body):
    model_config = ConfigDict(extra="allow")

    type: Literal["text", "json_object", "json_schema"]
    json_schema: dict[str, Any] | None = Field(default=None, alias="schema", exclude=True)


class Text(Body):
    model_config = ConfigDict(extra="allow")

    format: Format | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class Request(Body, openai.ResponseWishes):
    metadata: dict[str, str] | None = None
    model: str
    parallel_tool_calls: bool | None = False
    prompt: None = None
    reasoning: Reasoning | None = None
    thinking_token_budget: int | None = None
    text: Text | None = None
    tools: list[Tool] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def as_it_came(cls, values: Any) -> Any:
        """What is looked at before the schema."""
        if not isinstance(values, dict):
            raise refusing.fault()
        if values.get("background") and not values.get("store", True):
            raise ValueError("background needs store")
        if values.get("prompt") is not None:
            raise ValueError("prompt templates are not supported")
        return values


def asked(request: Request, before: Sequence[Mapping[str, Any]], settings: Settings) -> Asked:
    """The request, checked. Raises Refusal."""
    body = bodies.ChatRequest(
        model=request.model,
        messages=[],
        temperature=1.0 if request.temperature is None else request.temperature,
        top_p=1.0 if request.top_p is None else request.top_p,
        max_completion_tokens=request.max_output_tokens,
        stream=bool(request.stream),
        response_format=_format(request),
    )
    rules.sampling(body, request.max_output_tokens)
    turns = _turns(request, before)
    functions = [
        template.Function(tool.name or "", told.get("description"), told.get("parameters"))
        for tool in request.tools
        if tool.type == "function" and (told := tool.told())
    ]
    ids = tuple(messages.tokens(turns, functions, opens_answer=True))
    prompt = Prompt(len(ids), "", ids)
    call = asking.checked(body, (prompt,), request.max_output_tokens, settings, chat=True)
    answered = bool(turns) and turns[-1].role == "tool"
    calls = settings.parses and functions and request.tool_choice != "none" and not answered
    if calls and call.write is None:
        call = call._replace(calling=Calling.AUTO, write=writing.call(functions))
    return Asked(call, request.model)


def items(request: Request) -> Sequence[Mapping[str, Any]]:
    """The input as a list."""
    if isinstance(request.input, str):
        return [{"role": "user", "content": request.input}]
    return request.input


def _format(request: Request) -> bodies.ResponseFormat | None:
    form = request.text.format if request.text is not None else None
    if form is None or form.type == "text":
        return None
    return bodies.ResponseFormat(type=form.type, json_schema=form.json_schema)


def _turns(request: Request, before: Sequence[Mapping[str, Any]]) -> list[messages.Message]:
    """The conversation. Raises Refusal."""
    said: list[messages.Message] = []
    if request.instructions:
        said.append(messages.Message(role="system", content=request.instructions))
    for item in (*before, *items(request)):
        said += _turn(item)
    return said


def _turn(item: Mapping[str, Any]) -> Iterable[messages.Message]:
    """One item; the real server takes every one of type ``message`` for the assistant's."""
    kind = item.get("type", "")
    try:
        if kind == "" and "role" in item:
            yield messages.Message.model_validate(item)
        elif kind == "message":
            yield messages.Message(role="assistant", content=item["content"][0]["text"])
        elif kind == "function_call":
            yield messages.Message(role="function", content=item["arguments"])
        elif kind == "function_call_output":
            yield messages.Message(role="tool", content=item["output"])
        elif kind != "reasoning":
            raise Refusal(f"input must not hold items of type {kind!r}")
    except (ValueError, LookupError, TypeError) as error:
        if isinstance(error, Refusal):
            raise
        raise Refusal(f"an item of type {kind!r} cannot be read: {error}") from None
