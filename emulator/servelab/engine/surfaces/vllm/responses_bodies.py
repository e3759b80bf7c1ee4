"""The schema of a responses request, as vLLM 0.33 has it; ``openai_types`` has OpenAI's part."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from servelab.engine.surfaces import openai
from servelab.engine.surfaces.vllm import bodies, openai_types, orders, rules
from servelab.engine.surfaces.vllm.refusals import Refusal

Penalty = Annotated[float, Field(ge=-2.0, le=2.0)]
Retention = Annotated[
    Literal["in_memory", "24h"],
    BeforeValidator(lambda value: "in_memory" if value == "in-memory" else value),
]
# What an item is given that comes without a name: it is told nowhere.
_NAMELESS = "item"


class Message(BaseModel):
    """One of those before; anything else that is an object is taken as well."""

    author: dict[str, Any]
    content: list[Any]


class CacheOptions(BaseModel):
    """Told in the answer; without effect."""

    mode: Literal["implicit", "explicit"] = "implicit"
    ttl: Literal["30m"] = "30m"
    comparison_response_id: str | None = None
    prewarm: bool | None = Field(default=None, exclude=True)


class ResponsesRequest(bodies.Wishes, bodies.Rendered):
    told_in = orders.RESPONSES

    input: Annotated[Any, openai_types.taken_as("input")]
    background: bool | None = False
    include: list[openai.Included] | None = None
    instructions: str | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    metadata: dict[str, str] | None = None
    parallel_tool_calls: bool | None = True
    previous_response_id: str | None = None
    prompt_cache_options: CacheOptions | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: Retention | None = None
    reasoning: Annotated[Any, openai_types.taken_as("reasoning")] = None
    include_reasoning: bool = True
    safety_identifier: str | None = None
    service_tier: Literal["auto", "default", "flex", "scale", "priority"] = "auto"
    store: bool | None = True
    text: Annotated[Any, openai_types.taken_as("text")] = None
    tool_choice: Annotated[Any, openai_types.taken_as("tool_choice")] = "auto"
    tools: Annotated[Any, openai_types.taken_as("tools")] = Field(default_factory=list)
    top_logprobs: bodies.Count = 0
    truncation: Literal["auto", "disabled"] | None = "disabled"
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    enable_response_messages: bool = False
    previous_input_messages: list[Message | dict[str, Any]] | None = None

    @model_validator(mode="before")
    @classmethod
    def as_it_came(cls, data: Any) -> Any:
        """The checks that come before the schema. Raises Refusal."""
        return _checked(data) if isinstance(data, dict) else data


def _checked(body: dict[str, Any]) -> dict[str, Any]:
    body = _with_choice(body)
    tools = body.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        form = tool.get("format") if isinstance(tool, Mapping) else None
        if not isinstance(form, Mapping) or tool.get("type") != "custom":
            continue
        if form.get("type") == "grammar":
            raise Refusal("Custom tools take any text, not a grammar.", param="tools")
    asked = body.get("input")
    if isinstance(asked, Iterable) and not isinstance(asked, str):
        body = body | {"input": [_completed(item) for item in asked]}
    if body.get("prompt") is not None:
        raise Refusal("prompt templates are not supported.", param="prompt")
    if body.get("background") and not body.get("store", True):
        raise Refusal("background needs store: true.", param="background")
    rules.cache_salt(body)
    return body


def _with_choice(body: dict[str, Any]) -> dict[str, Any]:
    """The body with the choice of a tool that goes with its tools. Raises Refusal."""
    tools, choice = body.get("tools"), body.get("tool_choice", "auto")
    if isinstance(tools, int | float):
        raise Refusal("tools must be a list.")
    named = isinstance(choice, Mapping) and choice.get("type") in ("function", "custom")
    if not tools:
        if choice == "required" or named:
            raise Refusal("tool_choice needs tools.", param="tool_choice")
        return body | {"tool_choice": "none"} if choice in ("auto", "none") else body
    if not named:
        return body
    name, names = choice.get("name"), _names(tools)
    found = [each for each in names if name in (each, each.rpartition("__")[2])]
    if not isinstance(name, str) or not name or (name not in names and len(found) != 1):
        raise Refusal("tool_choice names none of the tools.", param="tool_choice")
    return body if name in names else body | {"tool_choice": {**choice, "name": found[0]}}


def _names(tools: Iterable[Any]) -> list[str]:
    """The names of all tools; of one in a namespace, with that before it."""
    names: list[Any] = []
    for tool in tools:
        if not isinstance(tool, Mapping):
            continue
        inner = tool.get("tools")
        if tool.get("type") == "namespace" and isinstance(inner, list):
            told = (each.get("name") for each in inner if isinstance(each, Mapping))
            names += [f"{tool.get('name')}__{each}" for each in told]
        else:
            names.append(tool.get("name"))
    return [name for name in names if isinstance(name, str)]


def _completed(item: Any) -> Any:
    """An item with what clients may leave out of it."""
    if not isinstance(item, dict):
        return item
    kind, content = item.get("type"), item.get("content")
    if kind == "reasoning":
        return {"id": _NAMELESS, **item}
    if not isinstance(content, list):
        return item
    if kind == "message" and item.get("role") == "assistant":
        parts = [_with_default(part, "output_text", "annotations", []) for part in content]
        told = {"id": _NAMELESS, "status": "completed", **item, "content": parts}
        try:
            openai_types.validator("output_message").validate_python(told)
        except ValidationError:
            return item
        return told
    return item | {"content": [_with_default(p, "input_image", "detail", "auto") for p in content]}


def _with_default(part: Any, kind: str, field: str, value: Any) -> Any:
    lacks = isinstance(part, dict) and part.get("type") == kind and field not in part
    return part | {field: value} if lacks else part
