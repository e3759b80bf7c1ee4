"""The schemas of the bodies an engine takes, as vLLM 0.33 has them; unknown fields are ignored.

Most fields change nothing here, and are there so that what vLLM refuses in them is refused.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    model_validator,
)

from servelab.engine.surfaces.vllm import extensions, messages, orders, rules
from servelab.engine.surfaces.vllm.messages import Messages

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

Stop = str | Annotated[list[str], Field(max_length=rules.MAX_STOP_STRINGS)] | None
Count = Annotated[int, BeforeValidator(lambda value: 0 if value is None else value)]
Seed = Annotated[int, Field(ge=INT64_MIN, le=INT64_MAX)]
TokenId = Annotated[int, Field(ge=0)]
CacheSalt = Annotated[str, Field(min_length=1, max_length=1024)]
Arguments = dict[str, Any]
Value = str | int | float
ExtraArguments = dict[str, Value | list[Value]]
ThinkingBudget = Annotated[int | None, BeforeValidator(extensions.thinking_budget)]
ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Body(BaseModel):
    """A part of a request.

    Its errors are told in the order of ``told_in``, and beyond that in that of its fields.
    """

    told_in: ClassVar[tuple[str, ...]] = ()
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


_WISHES = {"json_schema", "regex", "choice", "grammar", "json_object", "structural_tag"}


class StructuredOutputs(Body):
    json_schema: str | dict[str, Any] | None = Field(default=None, alias="json")
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None
    disable_any_whitespace: bool = False
    disable_additional_properties: bool = False
    whitespace_pattern: str | None = None
    structural_tag: str | None = None

    @model_validator(mode="after")
    def single(self) -> "StructuredOutputs":
        """It holds one wish. Raises Refusal."""
        rules.single_wish(self.model_dump(by_alias=True, include=_WISHES, exclude_none=True))
        return self


class RepetitionDetection(Body):
    max_pattern_size: int = 0
    min_pattern_size: int = 0
    min_count: int = 0

    @model_validator(mode="after")
    def sound(self) -> "RepetitionDetection":
        """The sizes fit each other."""
        extensions.repetition(self.max_pattern_size, self.min_pattern_size, self.min_count)
        return self


class Wishes(Body):
    """What all requests for text have in common."""

    model: str | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    presence_penalty: float | None = None
    seed: Seed | None = None
    stop: Stop = None
    stream: bool | None = False
    temperature: float | None = None
    top_p: float | None = None
    user: str | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    watermarking: bool | None = None
    stop_token_ids: list[int] | None = None
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    skip_special_tokens: bool | None = None
    spaces_between_special_tokens: bool = True
    structured_outputs: StructuredOutputs | None = None
    priority: int = Field(default=0, ge=INT64_MIN, le=INT64_MAX)
    request_id: str = ""
    session_id: str | None = None
    mm_payload: Literal["tensors", "none"] = "tensors"
    return_mm_kwargs: bool | None = None
    cache_salt: CacheSalt | None = None
    kv_transfer_params: dict[str, Any] | None = None
    ec_transfer_params: dict[str, Any] | None = None
    vllm_xargs: ExtraArguments | None = None


class Sampling(Wishes):
    """What chats and text completions have in common."""

    stream_options: StreamOptions | None = None
    use_beam_search: bool = False
    length_penalty: float = 1.0
    min_tokens: int = 0
    truncate_prompt_tokens: Annotated[int, Field(ge=-1, le=INT64_MAX)] | None = None
    truncation_side: Literal["left", "right"] | None = None
    prompt_logprobs: int | None = None
    logprob_token_ids: list[int] | None = None
    allowed_token_ids: list[int] | None = None
    bad_words: list[str] = Field(default_factory=list)
    response_format: ResponseFormat | StructuralTagFormat | LegacyStructuralTagFormat | None = None
    return_tokens_as_token_ids: bool | None = None
    return_token_ids: bool | None = None
    return_weight_versions: bool = False
    routed_experts_prompt_start: int = Field(default=0, ge=0)
    return_token_offsets: bool | None = False
    repetition_detection: RepetitionDetection | None = None
    thinking_token_budget: ThinkingBudget = None
    stream_interval: Annotated[int, Field(ge=1)] | None = None


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


class Rendered(Body):
    """What a chat template may be given besides messages."""

    chat_template_kwargs: Arguments | None = None
    media_io_kwargs: dict[str, Arguments] | None = None
    mm_processor_kwargs: Arguments | None = None


class ChatRequest(Sampling, Rendered):
    told_in = orders.CHAT

    messages: Messages
    logprobs: bool | None = False
    top_logprobs: Count = 0
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: int | None = 1
    tools: list[Tool] | None = None
    tool_choice: Literal["none"] | Literal["auto"] | Literal["required"] | NamedTool | None = "none"
    reasoning_effort: ReasoningEffort | None = None
    include_reasoning: bool = True
    parallel_tool_calls: bool | None = True
    echo: bool = False
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    add_special_tokens: bool = False
    documents: list[dict[str, str]] | None = None
    chat_template: str | None = None
    return_prompt_text: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def as_it_came(cls, data: Any) -> Any:
        """The checks that come before the schema."""
        if not isinstance(data, dict):
            return data
        messages.list_calls(data.get("messages"))
        messages.rename_reasoning(data.get("messages"))
        rules.chat_body(data)
        if "tool_choice" not in data and data.get("tools"):
            return data | {"tool_choice": "auto"}
        return data


class CompletionRequest(Sampling):
    told_in = orders.COMPLETION

    prompt: list[TokenId] | list[list[TokenId]] | str | list[str] | None = None
    echo: bool | None = False
    logprobs: int | None = None
    max_tokens: int = 16
    n: int = 1
    suffix: str | None = None
    prompt_embeds: bytes | list[bytes] | None = None
    add_special_tokens: bool = True
    # No fields of vLLM's schema, but it looks for them.
    mm_processor_kwargs: Any = None
    media_io_kwargs: Any = None

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


class Salted(Body):
    """A request whose ``cache_salt`` is looked at before all else."""

    @model_validator(mode="before")
    @classmethod
    def as_it_came(cls, data: Any) -> Any:
        """The check that comes before the schema. Raises Refusal."""
        if isinstance(data, dict):
            rules.cache_salt(data)
        return data
