"""The schema of Anthropic's messages API, as vLLM 0.33 has it."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field, field_validator, model_validator

from servelab.engine.surfaces.vllm import bodies, orders, rules

Display = Literal["summarized", "omitted", "updates"]
BlockKind = Literal[
    "text",
    "image",
    "tool_use",
    "tool_result",
    "tool_reference",
    "thinking",
    "redacted_thinking",
    "tool_addition",
    "tool_removal",
]


class Tool(BaseModel):
    name: str
    description: str | None = None
    input_schema: dict[str, Any]
    strict: bool | None = None
    defer_loading: bool | None = None


class Reference(BaseModel):
    type: Literal["tool_reference"]
    name: str


class Definition(BaseModel):
    type: Literal["tool_definition"]
    definition: Tool


class Block(BaseModel):
    type: BlockKind
    text: str | None = None
    source: dict[str, Any] | None = None
    id: str | None = None
    tool_use_id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None
    content: str | list[dict[str, Any]] | None = None
    is_error: bool | None = None
    tool_name: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    tool: Annotated[Reference | Definition, Field(discriminator="type")] | None = None

    @model_validator(mode="after")
    def names(self) -> "Block":
        """A change of the tools says of which."""
        if self.type in ("tool_addition", "tool_removal") and self.tool is None:
            raise ValueError(f"tool is required for {self.type} blocks")
        if self.type == "tool_removal" and not isinstance(self.tool, Reference):
            raise ValueError("tool_removal takes a tool_reference")
        return self


class Message(BaseModel):
    role: Literal["user", "assistant", "system"]
    content: str | list[Block]


class ToolChoice(BaseModel):
    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None

    @model_validator(mode="after")
    def named(self) -> "ToolChoice":
        """A certain tool has a name."""
        if self.type == "tool" and not self.name:
            raise ValueError("tool_choice.name is required when type is 'tool'")
        return self


class Enabled(BaseModel):
    type: Literal["enabled"]
    budget_tokens: int = Field(ge=1024)
    display: Display | None = None


class Disabled(BaseModel):
    type: Literal["disabled"]


class Adaptive(BaseModel):
    type: Literal["adaptive"]
    display: Display | None = None


class OutputFormat(BaseModel):
    json_schema: bodies.Arguments | None = Field(default=None, alias="schema")
    type: Literal["json_schema"] = "json_schema"


class OutputConfig(BaseModel):
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: OutputFormat | None = None


class CountRequest(BaseModel):
    told_in: ClassVar[tuple[str, ...]] = orders.COUNT

    model: str
    messages: list[Message]
    output_config: OutputConfig | None = None
    thinking: Annotated[Enabled | Disabled | Adaptive, Field(discriminator="type")] | None = None
    system: str | list[Block] | None = None
    tool_choice: ToolChoice | None = None
    tools: list[Tool] | None = None
    chat_template_kwargs: bodies.Arguments | None = None

    @field_validator("model")
    @classmethod
    def named(cls, name: str) -> str:
        """An empty name is none."""
        if not name:
            raise ValueError("a model is required")
        return name


class MessagesRequest(CountRequest):
    told_in = orders.MESSAGES

    max_tokens: int
    metadata: dict[str, Any] | None = None
    stop_sequences: Annotated[list[str], Field(max_length=rules.MAX_STOP_STRINGS)] | None = None
    stream: bool | None = False
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    mm_payload: Literal["tensors", "none"] = "tensors"
    return_mm_kwargs: bool | None = None
    cache_salt: bodies.CacheSalt | None = None
    watermarking: bool | None = None
    kv_transfer_params: bodies.Arguments | None = None
    ec_transfer_params: bodies.Arguments | None = None
    vllm_xargs: bodies.ExtraArguments | None = None

    @field_validator("max_tokens")
    @classmethod
    def positive(cls, tokens: int) -> int:
        """At least one token."""
        if tokens <= 0:
            raise ValueError("max_tokens must be positive")
        return tokens

    @model_validator(mode="after")
    def bounded(self) -> "MessagesRequest":
        """Thoughts leave room for an answer."""
        if isinstance(self.thinking, Enabled) and self.thinking.budget_tokens >= self.max_tokens:
            raise ValueError("thinking.budget_tokens must be less than max_tokens")
        return self
