"""The schema of a responses request, as vLLM 0.33 has it from OpenAI's client.

Classes in a union have the client's names, because an error's path names the class.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from servelab.engine.surfaces import openai
from servelab.engine.surfaces.vllm import bodies, rules
from servelab.engine.surfaces.vllm.refusals import Refusal

Penalty = Annotated[float, Field(ge=-2.0, le=2.0)]
Retention = Annotated[
    Literal["in_memory", "24h"],
    BeforeValidator(lambda value: "in_memory" if value == "in-memory" else value),
]
Summary = Literal["auto", "concise", "detailed"]


class Part(BaseModel):
    """A part of a request whose fields, known and unknown, the answer repeats."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())


class Reasoning(Part):
    context: Literal["auto", "current_turn", "all_turns"] | None = None
    effort: bodies.ReasoningEffort | None = None
    generate_summary: Summary | None = None
    mode: str | None = None
    summary: Summary | None = None


class ResponseFormatText(Part):
    type: Literal["text"]


class ResponseFormatTextJSONSchemaConfig(Part):
    name: str
    json_schema: dict[str, Any] = Field(alias="schema")
    type: Literal["json_schema"]
    description: str | None = None
    strict: bool | None = None


class ResponseFormatJSONObject(Part):
    type: Literal["json_object"]


class TextConfig(Part):
    format: (
        ResponseFormatText | ResponseFormatTextJSONSchemaConfig | ResponseFormatJSONObject | None
    ) = None
    verbosity: Literal["low", "medium", "high"] | None = None


class CacheOptions(BaseModel):
    """Told in the answer; without effect."""

    mode: str = "implicit"
    ttl: str = "30m"
    comparison_response_id: str | None = None


class FunctionTool(Part):
    name: str
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    type: Literal["function"]
    allowed_callers: list[str] | None = None
    asynchronous: bool | None = Field(default=None, alias="async")
    defer_loading: bool | None = None
    description: str | None = None
    output_schema: dict[str, Any] | None = None


class OtherTool(Part):
    """A tool that the server would have to bring."""

    type: Literal[
        "file_search",
        "computer",
        "computer_use_preview",
        "web_search",
        "web_search_2025_08_26",
        "web_search_preview",
        "web_search_preview_2025_03_11",
        "mcp",
        "code_interpreter",
        "programmatic_tool_calling",
        "image_generation",
        "local_shell",
        "shell",
        "custom",
        "namespace",
        "tool_search",
        "apply_patch",
    ]


class ToolChoiceAllowed(Part):
    mode: Literal["auto", "required"]
    tools: list[dict[str, Any]]
    type: Literal["allowed_tools"]


class ToolChoiceTypes(Part):
    type: Literal[
        "file_search",
        "web_search_preview",
        "computer",
        "computer_use_preview",
        "computer_use",
        "web_search_preview_2025_03_11",
        "image_generation",
        "code_interpreter",
    ]


class ToolChoiceFunction(Part):
    name: str
    type: Literal["function"]


class ToolChoiceMcp(Part):
    server_label: str
    type: Literal["mcp"]
    name: str | None = None


class ToolChoiceCustom(Part):
    name: str
    type: Literal["custom"]


class ToolChoiceSpecificProgrammaticToolCallingParam(Part):
    type: Literal["programmatic_tool_calling"]


class ToolChoiceApplyPatch(Part):
    type: Literal["apply_patch"]


class ToolChoiceShell(Part):
    type: Literal["shell"]


ToolChoice = (
    Literal["none", "auto", "required"]
    | ToolChoiceAllowed
    | ToolChoiceTypes
    | ToolChoiceFunction
    | ToolChoiceMcp
    | ToolChoiceCustom
    | ToolChoiceSpecificProgrammaticToolCallingParam
    | ToolChoiceApplyPatch
    | ToolChoiceShell
)


# What an item of a conversation must hold, by its type; a message has none, or says so.
_ITEM_FIELDS: Mapping[object, Sequence[str]] = {
    "function_call": ("arguments", "call_id", "name"),
    "function_call_output": ("output",),
    "reasoning": ("id", "summary"),
    "item_reference": ("id",),
}
_ROLES = frozenset({"user", "assistant", "system", "developer"})
_PARTS = frozenset({"input_text", "input_image", "input_file", "output_text", "refusal"})


def _item(item: dict[str, Any]) -> dict[str, Any]:
    fields = _ITEM_FIELDS.get(item.get("type")) if isinstance(item.get("type"), str) else None
    if fields is None:
        if item.get("type", "message") != "message" or item.get("role") not in _ROLES:
            raise ValueError("this is no item of a conversation")
        _check_content(item.get("content"))
    elif not all(name in item for name in fields):
        raise ValueError(f"an item of this type needs {', '.join(fields)}")
    return item


def _check_content(content: object) -> None:
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise ValueError("content must be a text or a list of parts")
    for part in content:
        if not isinstance(part, dict) or part.get("type") not in _PARTS:
            raise ValueError("this is no part of a message")


class ResponsesRequest(bodies.Wishes, bodies.Rendered):
    told_first = ("background", "include", "input", "instructions", "max_output_tokens")

    input: str | list[Annotated[dict[str, Any], AfterValidator(_item)]]
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
    reasoning: Reasoning | None = None
    include_reasoning: bool = True
    safety_identifier: str | None = None
    service_tier: Literal["auto", "default", "flex", "scale", "priority"] = "auto"
    store: bool | None = True
    text: TextConfig | None = None
    tool_choice: ToolChoice = "auto"
    tools: list[FunctionTool | OtherTool] = Field(default_factory=list)
    top_logprobs: bodies.Count = 0
    truncation: Literal["auto", "disabled"] | None = "disabled"
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    enable_response_messages: bool = False
    previous_input_messages: list[dict[str, Any]] | None = None

    @model_validator(mode="before")
    @classmethod
    def as_it_came(cls, data: Any) -> Any:
        """The checks that come before the schema. Raises Refusal."""
        return _checked(data) if isinstance(data, dict) else data


def _checked(body: dict[str, Any]) -> dict[str, Any]:
    rules.cache_salt(body)
    if isinstance(body.get("tools"), int | float):
        raise Refusal("tools must be a list.")
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
