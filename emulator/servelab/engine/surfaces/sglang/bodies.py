"""The schemas of the bodies SGLang 0.5 takes; unknown fields are ignored."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StrictBool, field_validator, model_validator

from servelab.engine.surfaces import refusing
from servelab.engine.surfaces.sglang.messages import Body, Message, Tool

DEFAULT_MODEL = "default"

Effort = (
    Literal["none", "minimal", "low", "medium", "high", "xhigh", "ultra", "max"]
    | Annotated[float, Field(ge=0.0, le=0.99, allow_inf_nan=False)]
    | None
)


class StreamOptions(Body):
    include_usage: bool | None = False
    continuous_usage_stats: bool | None = False


class JsonSchema(Body):
    name: str
    description: str | None = None
    json_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    strict: StrictBool | None = None


class ResponseFormat(Body):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class Structure(Body):
    begin: str
    structure: dict[str, Any] | None = Field(default=None, alias="schema")
    end: str


class StructuralTag(Body):
    type: Literal["structural_tag"]
    structures: list[Structure]
    triggers: list[str]


class FormatTag(Body):
    type: Literal["structural_tag"]
    format: dict[str, Any]


class Common(Body):
    """What chats and text completions have in common."""

    model: str = DEFAULT_MODEL
    frequency_penalty: float = 0.0
    logit_bias: dict[str, float] | None = None
    n: int = 1
    presence_penalty: float = 0.0
    response_format: ResponseFormat | StructuralTag | FormatTag | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    user: str | None = None
    min_tokens: int = 0
    regex: str | None = None
    ebnf: str | None = None
    stop_token_ids: list[int] | None = None
    stop_regex: str | list[str] | None = None
    no_stop_trim: bool = False
    ignore_eos: bool = False
    skip_special_tokens: bool = True
    lora_path: list[str | None] | str | None = None
    rid: list[str] | str | None = None
    priority: int | None = None
    return_token_ids: bool = False


class ToolChoiceName(Body):
    name: str | None = None


class ToolChoice(Body):
    function: ToolChoiceName
    type: Literal["function"] = "function"


class ChatRequest(Common):
    messages: list[Message]
    logprobs: bool = False
    top_logprobs: int | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | Literal["auto", "required", "none"] = "auto"
    parallel_tool_calls: bool = True
    reasoning_effort: Effort = None
    continue_final_message: bool = False
    separate_reasoning: bool = True
    stream_reasoning: bool = True
    chat_template_kwargs: dict[str, Any] | None = None
    input_ids: list[int] | None = None
    return_prompt_token_ids: bool = False
    return_meta_info: bool = False

    @model_validator(mode="before")
    @classmethod
    def as_it_came(cls, values: Any) -> Any:
        """What looks into the body before the schema does, and fails on what it did not expect."""
        if not isinstance(values, dict):
            raise refusing.fault()
        values = dict(values)
        chosen = values.get("response_format")
        if chosen:
            if not isinstance(chosen, dict):
                raise refusing.fault()
            values["response_format"] = _with_schema(chosen)
        if values.get("tool_choice") is None:
            values["tool_choice"] = "none" if values.get("tools") is None else "auto"
        return values

    @field_validator("reasoning_effort", mode="before")
    @classmethod
    def effort(cls, value: Any) -> Any:
        """A boolean would pass as a number."""
        if isinstance(value, bool):
            raise ValueError("reasoning_effort must not be a boolean")
        return value


def _with_schema(chosen: dict[str, Any]) -> dict[str, Any]:
    """A bare schema beside the type is taken too."""
    if chosen.get("type") != "json_schema" or chosen.get("json_schema") or "schema" not in chosen:
        return chosen
    rest = {name: value for name, value in chosen.items() if name != "schema"}
    schema = chosen["schema"]
    if not schema:
        return rest
    title = schema.get("title", "Schema") if isinstance(schema, dict) else "Schema"
    return rest | {"json_schema": {"name": title, "schema": schema}}


class CompletionRequest(Common):
    prompt: list[int] | list[list[int]] | str | list[str]
    best_of: int | None = None
    echo: bool = False
    logprobs: int | None = None
    max_tokens: int = 16
    suffix: str | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    json_schema: str | None = None

    @field_validator("max_tokens")
    @classmethod
    def positive(cls, value: int) -> int:
        """No tokens at all cannot be asked for."""
        if value <= 0:
            raise ValueError("max_tokens must be positive")
        return value


class GenerateRequest(Body):
    """The native request; what is in ``sampling_params`` is looked at later."""

    rid: str | list[str] | None = None
    text: str | list[str] | None = None
    input_ids: list[int] | list[list[int]] | None = None
    input_embeds: list[list[list[float]]] | list[list[float]] | None = None
    sampling_params: list[dict[str, Any]] | dict[str, Any] | None = None
    return_logprob: list[bool] | bool | None = None
    logprob_start_len: list[int] | int | None = None
    top_logprobs_num: list[int] | int | None = None
    return_text_in_logprobs: bool = False
    stream: bool = False
    lora_path: list[str | None] | str | None = None
    return_prompt_token_ids: bool = False
    priority: int | None = None


class NativeSampling(Body):
    """``sampling_params`` of a native request: here no field is unknown and no type is lax."""

    model_config = ConfigDict(extra="forbid", strict=True)

    max_new_tokens: int | None = 128
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    stop_regex: str | list[str] | None = None
    temperature: float | None = 1.0
    top_p: float | None = 1.0
    top_k: int | None = -1
    min_p: float | None = 0.0
    frequency_penalty: float | None = 0.0
    presence_penalty: float | None = 0.0
    repetition_penalty: float | None = 1.0
    min_new_tokens: int | None = 0
    n: int | None = 1
    json_schema: str | None = None
    regex: str | None = None
    ebnf: str | None = None
    structural_tag: str | None = None
    ignore_eos: bool | None = False
    skip_special_tokens: bool | None = True
    spaces_between_special_tokens: bool | None = True
    no_stop_trim: bool | None = False
    stream_interval: int | None = None
    logit_bias: dict[str, float] = Field(default_factory=dict)
    sampling_seed: int | None = None
    custom_params: Any = None
    beam_width: int | None = None
    watermark: Any = None
    choice: list[str] = Field(default_factory=list)


class TokenizeRequest(Body):
    model: str = DEFAULT_MODEL
    prompt: str | list[str] | None = None
    messages: list[Message] | None = None
    add_special_tokens: bool = True

    @model_validator(mode="after")
    def one_of_two(self) -> "TokenizeRequest":
        """Text or a conversation."""
        if (self.prompt is None) == (self.messages is None):
            raise ValueError("Exactly one of 'prompt' or 'messages' must be provided.")
        return self


class DetokenizeRequest(Body):
    model: str = DEFAULT_MODEL
    tokens: list[int] | list[list[int]]
    skip_special_tokens: bool = True


class EmbeddingRequest(Body):
    model: str = DEFAULT_MODEL
    input: list[int] | list[list[int]] | str | list[str] | list[dict[str, Any]]
