"""The schemas of the bodies an engine takes, as vLLM 0.33 has them; unknown fields are ignored."""

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    model_validator,
)

from servelab.engine.surfaces.vllm import rules
from servelab.engine.surfaces.vllm.messages import Message

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

Stop = str | Annotated[list[str], Field(max_length=rules.MAX_STOP_STRINGS)] | None
Count = Annotated[int, BeforeValidator(lambda value: 0 if value is None else value)]
Seed = Annotated[int, Field(ge=INT64_MIN, le=INT64_MAX)]
TokenId = Annotated[int, Field(ge=0)]


class Body(BaseModel):
    """A part of a request."""

    model_config = ConfigDict(extra="ignore", protected_namespaces=())

    @model_validator(mode="wrap")
    @classmethod
    def unnamed(cls, data: Any, handler: ModelWrapValidatorHandler["Body"]) -> "Body":
        """Wrapped as vLLM's are, so that the path of an error in a union is not by class name."""
        return handler(data)


class StreamOptions(Body):
    include_usage: bool | None = False
    continuous_usage_stats: bool | None = False


class JsonSchema(Body):
    name: str
    description: str | None = None
    json_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    strict: bool | None = None


class ResponseFormat(Body):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class StructuralTagFormat(Body):
    type: Literal["structural_tag"]
    format: Any


class LegacyStructure(Body):
    begin: str
    structure: dict[str, Any] | None = Field(default=None, alias="schema")
    end: str


class LegacyStructuralTagFormat(Body):
    type: Literal["structural_tag"]
    structures: list[LegacyStructure]
    triggers: list[str]


class StructuredOutputs(Body):
    json_schema: str | dict[str, Any] | None = Field(default=None, alias="json")
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None
    structural_tag: str | None = None


class Sampling(Body):
    """What all requests for text have in common."""

    model: str | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    presence_penalty: float | None = None
    seed: Seed | None = None
    stop: Stop = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    user: str | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    stop_token_ids: list[int] | None = None
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    min_tokens: int = 0
    prompt_logprobs: int | None = None
    allowed_token_ids: list[int] | None = None
    bad_words: list[str] = Field(default_factory=list)
    response_format: ResponseFormat | StructuralTagFormat | LegacyStructuralTagFormat | None = None
    structured_outputs: StructuredOutputs | None = None
    priority: int = Field(default=0, ge=INT64_MIN, le=INT64_MAX)
    request_id: str | None = None
    return_token_ids: bool | None = None


class Function(Body):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(Body):
    type: Literal["function"] = "function"
    function: Function


class NamedFunction(Body):
    name: str


class NamedTool(Body):
    function: NamedFunction
    type: Literal["function"] = "function"


class ChatRequest(Sampling):
    messages: list[Message]
    logprobs: bool | None = False
    top_logprobs: Count = 0
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: int | None = 1
    tools: list[Tool] | None = None
    tool_choice: Literal["none"] | Literal["auto"] | Literal["required"] | NamedTool | None = "none"
    parallel_tool_calls: bool | None = True
    echo: bool = False
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    chat_template: str | None = None
    return_prompt_text: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def as_it_came(cls, data: Any) -> Any:
        """The checks that come before the schema."""
        if not isinstance(data, dict):
            return data
        rules.chat_body(data)
        if "tool_choice" not in data and data.get("tools"):
            return data | {"tool_choice": "auto"}
        return data


class CompletionRequest(Sampling):
    prompt: list[TokenId] | list[list[TokenId]] | str | list[str] | None = None
    echo: bool | None = False
    logprobs: int | None = None
    max_tokens: int = 16
    n: int = 1
    suffix: str | None = None

    @model_validator(mode="before")
    @classmethod
    def as_it_came(cls, data: Any) -> Any:
        """The checks that come before the schema."""
        if not isinstance(data, dict):
            return data
        rules.completion_body(data)
        if data.get("max_tokens", 0) is None:
            return {name: value for name, value in data.items() if name != "max_tokens"}
        return data


class TokenizePrompt(Body):
    model: str | None = None
    prompt: str
    return_token_strs: bool | None = False


class TokenizeChat(Body):
    model: str | None = None
    messages: list[Message]
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    return_token_strs: bool | None = False
    tools: list[Tool] | None = None

    @model_validator(mode="before")
    @classmethod
    def as_it_came(cls, data: Any) -> Any:
        """The check that comes before the schema."""
        if isinstance(data, dict):
            rules.generation_prompt(data)
        return data


class DetokenizeRequest(Body):
    model: str | None = None
    tokens: list[Annotated[int, Field(ge=0, le=INT64_MAX)]]
