"""The schemas of the bodies ``trtllm-serve`` takes; it refuses a field it does not know."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from servelab.engine.surfaces import refusing
from servelab.engine.surfaces.tensorrt_llm.messages import Message

# The most candidates beside a token that may be asked for.
MAX_LOGPROBS = 20

Effort = Literal["low", "medium", "high", "max", "none"]


class Body(BaseModel):
    """A part of a request."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class StreamOptions(Body):
    include_usage: bool | None = True
    continuous_usage_stats: bool | None = False


class ResponseFormat(Body):
    type: Literal["text", "json", "json_schema", "json_object", "regex", "ebnf", "structural_tag"]
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    json_schema: dict[str, Any] | None = None
    regex: str | None = None
    ebnf: str | None = None
    format: dict[str, Any] | None = None


class LoraRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    lora_name: str
    lora_int_id: int
    lora_path: str = ""


class ConversationParams(Body):
    conversation_id: str
    subagent_affinity_id: str | None = None


class Common(Body):
    """What chats and text completions have in common."""

    model: str
    best_of: int | None = None
    frequency_penalty: float | None = 0.0
    logit_bias: dict[str, float] | None = None
    n: int = 1
    presence_penalty: float | None = 0.0
    seed: int | None = None
    stop: str | list[str] | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    user: str | None = None
    lora_request: LoraRequest | None = None
    prompt_ignore_length: int | None = 0
    use_beam_search: bool = False
    top_k: int = 0
    top_p_min: float = 0.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    length_penalty: float | None = None
    early_stopping: bool | Literal["never"] | None = None
    stop_token_ids: list[int] | None = None
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    min_tokens: int = 0
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    truncate_prompt_tokens: Annotated[int, Field(ge=1)] | None = None
    thinking_token_budget: int | None = None
    response_format: ResponseFormat | None = None
    disaggregated_params: dict[str, Any] | None = None
    conversation_params: ConversationParams | None = None
    priority: Annotated[float, Field(ge=0.0, le=1.0)] | None = None


class CompletionRequest(Common):
    prompt: list[int] | list[list[int]] | str | list[str]
    echo: bool | None = False
    logprobs: int | None = None
    max_tokens: int | None = None
    suffix: str | None = None
    return_context_logits: bool = False
    detokenize: bool = True
    add_special_tokens: bool = True

    @model_validator(mode="before")
    @classmethod
    def as_it_came(cls, values: Any) -> Any:
        """What is looked at before the schema."""
        values = _object(values)
        _no_suffix(values)
        if values.get("stream_options") and not values.get("stream"):
            raise ValueError("stream_options without stream")
        _limited("logprobs", values.get("logprobs"))
        return values


class Function(Body):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(Body):
    type: Literal["function"] = "function"
    function: Function


class FunctionName(Body):
    name: str


class ToolChoice(Body):
    function: FunctionName
    type: Literal["function"] = "function"


class Thinking(Body):
    type: Literal["enabled", "disabled"] = "enabled"
    keep: Literal["all"] | None = None
    effort: Literal["low", "high", "max"] | None = None


class ChatRequest(Common):
    messages: list[Message]
    prompt_token_ids: list[int] | None = None
    prompt_token_ids_b64: str | None = None
    logprobs: bool | None = False
    top_logprobs: int | None = 0
    max_completion_tokens: int | None = Field(default=None, validation_alias="max_tokens")
    tools: list[Tool] | None = None
    tool_choice: Literal["none", "auto", "required"] | ToolChoice | None = "none"
    parallel_tool_calls: bool | None = None
    reasoning_effort: Effort | None = "low"
    thinking: Thinking | None = None
    echo: bool = False
    add_generation_prompt: bool = True
    add_special_tokens: bool = False
    documents: list[dict[str, str]] | None = None
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    injected_chat_template_kwargs: list[str] | None = None
    media_io_kwargs: dict[Literal["image", "video", "audio"], dict[str, Any]] | None = None
    cache_salt: str | None = None
    agent_hierarchy: Any = None
    mm_processor_kwargs: dict[str, Any] | None = None

    @model_validator(mode="before")
    @classmethod
    def as_it_came(cls, values: Any) -> Any:
        """What is looked at before the schema."""
        values = _object(values)
        _no_suffix(values)
        if values.get("top_logprobs") is not None:
            _limited("top_logprobs", values["top_logprobs"])
            if not values.get("logprobs"):
                raise ValueError("top_logprobs without logprobs")
        dynamic = _dynamic_tools(values)
        if "tool_choice" not in values and (values.get("tools") or dynamic):
            values = values | {"tool_choice": "auto"}
        chosen = values.get("tool_choice", "none")
        if chosen not in ("none", "auto"):
            given = values.get("tools") or (chosen == "required" and dynamic)
            if not given:
                raise ValueError("tool_choice without tools")
        if values.get("stream_options") is not None and not values.get("stream"):
            raise ValueError("stream_options without stream")
        return values

    @field_validator("cache_salt")
    @classmethod
    def salted(cls, value: str | None) -> str | None:
        """A salt of blanks is none."""
        if value is not None and not value.strip():
            raise ValueError("cache_salt must not be empty")
        return value


def _object(values: Any) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise refusing.fault()
    return values


def _no_suffix(values: dict[str, Any]) -> None:
    if values.get("suffix"):
        raise ValueError("suffix is not supported")


def _limited(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        return
    if value < 0:
        raise ValueError(f"{name} must be positive, got {value}")
    if value > MAX_LOGPROBS:
        raise ValueError(f"{name} must be at most {MAX_LOGPROBS}, got {value}")


def _dynamic_tools(values: dict[str, Any]) -> bool:
    """Whether a system message brings tools; no other may."""
    given = values.get("messages")
    said = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
    if any(each.get("tools") is not None and each.get("role") != "system" for each in said):
        raise ValueError("only system messages may bring tools")
    return any(each.get("tools") for each in said)


class TokenizeRequest(Body):
    model: str | None = None
    prompt: str
