"""The bodies that Triton's OpenAI front end takes; a field it does not know is refused.

The class names are the front end's (schemas/openai.py), because an error's path names the class.
"""

from enum import Enum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, RootModel

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

Penalty = Annotated[float, Field(ge=-2.0, le=2.0)] | None
Count = Annotated[int, Field(ge=0)] | None
Share = Annotated[float, Field(ge=0.0, le=1.0)] | None


class PromptItem(RootModel[list[Any]]):
    """A list of tokens."""


class StreamOptions(BaseModel):
    include_usage: bool | None = False


class Sampling(BaseModel):
    """What both requests have in common."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    model: str
    frequency_penalty: Penalty = 0
    ignore_eos: bool | None = False
    logit_bias: dict[str, int] | None = None
    min_tokens: Count = None
    n: Annotated[int, Field(ge=1, le=128)] | None = 1
    presence_penalty: Penalty = 0
    seed: Annotated[int, Field(ge=INT64_MIN, le=INT64_MAX)] | None = None
    stop: str | list[str] | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = 1
    top_p: Share = 1
    user: str | None = None
    max_tokens: Count = None


class CreateCompletionRequest(Sampling):
    prompt: str | list[str] | list[int] | list[PromptItem]
    best_of: Annotated[int, Field(ge=0, le=20)] | None = 1
    echo: bool | None = False
    logprobs: Annotated[int, Field(ge=0, le=5)] | None = None
    suffix: str | None = None


class Role(Enum):
    system = "system"


class Role1(Enum):
    user = "user"


class Role2(Enum):
    assistant = "assistant"


class Role3(Enum):
    tool = "tool"


class Role4(Enum):
    function = "function"


class Type(Enum):
    image_url = "image_url"


class Type1(Enum):
    text = "text"


class ImageUrl(BaseModel):
    url: str
    detail: str | None = "auto"


class ChatCompletionRequestMessageContentPartImage(BaseModel):
    type: Type
    image_url: ImageUrl


class ChatCompletionRequestMessageContentPartText(BaseModel):
    type: Type1
    text: str


class ChatCompletionRequestMessageContentPart(
    RootModel[
        ChatCompletionRequestMessageContentPartText | ChatCompletionRequestMessageContentPartImage
    ]
):
    """A part of a message."""


class FunctionCall(BaseModel):
    arguments: str
    name: str


class ChatCompletionMessageToolCall(BaseModel):
    id: str
    type: str
    function: FunctionCall


class ChatCompletionRequestSystemMessage(BaseModel):
    content: str
    role: Role
    name: str | None = None


class ChatCompletionRequestUserMessage(BaseModel):
    content: str | list[ChatCompletionRequestMessageContentPart]
    role: Role1
    name: str | None = None


class ChatCompletionRequestAssistantMessage(BaseModel):
    content: str | None = None
    role: Role2
    name: str | None = None
    tool_calls: list[ChatCompletionMessageToolCall] | None = None
    function_call: FunctionCall | None = None


class ChatCompletionRequestToolMessage(BaseModel):
    role: Role3
    content: str
    tool_call_id: str


class ChatCompletionRequestFunctionMessage(BaseModel):
    role: Role4
    content: str
    name: str


class ChatCompletionRequestMessage(
    RootModel[
        ChatCompletionRequestSystemMessage
        | ChatCompletionRequestUserMessage
        | ChatCompletionRequestAssistantMessage
        | ChatCompletionRequestToolMessage
        | ChatCompletionRequestFunctionMessage
    ]
):
    """A message of any role."""


class FunctionObject(BaseModel):
    description: str | None = None
    name: str
    parameters: dict[str, Any] | None = None


class ChatCompletionTool(BaseModel):
    type: str
    function: FunctionObject


class ChatCompletionToolChoiceOption1(Enum):
    none = "none"
    auto = "auto"
    required = "required"


class Function(BaseModel):
    name: str


class ChatCompletionNamedToolChoice(BaseModel):
    type: str
    function: Function


class ChatCompletionToolChoiceOption(
    RootModel[ChatCompletionToolChoiceOption1 | ChatCompletionNamedToolChoice]
):
    """Which tool is called."""


class Type6(Enum):
    text = "text"
    json_object = "json_object"


class ResponseFormat(BaseModel):
    type: Type6 | None = Type6.text


class CreateChatCompletionRequest(Sampling):
    messages: Annotated[list[ChatCompletionRequestMessage], Field(min_length=1)]
    logprobs: bool | None = False
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    max_completion_tokens: Count = None
    response_format: ResponseFormat | None = None
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = 0.7
    tools: list[ChatCompletionTool] | None = None
    tool_choice: ChatCompletionToolChoiceOption | None = None
    function_call: Any = None
    functions: list[Any] | None = None
