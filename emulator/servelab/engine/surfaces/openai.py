"""Parts of OpenAI's schemas that several engines take from its client as they are."""

from typing import Any, Literal

from pydantic import BaseModel

# What a responses request may ask to have beside the answer.
Included = Literal[
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
]


class ResponseWishes(BaseModel):
    """What a responses request may hold, as far as engines agree on it."""

    background: bool | None = False
    include: list[Included] | None = None
    input: str | list[dict[str, Any]]
    instructions: str | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    previous_response_id: str | None = None
    service_tier: Literal["auto", "default", "flex", "scale", "priority"] = "auto"
    store: bool | None = True
    stream: bool | None = False
    temperature: float | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] = "auto"
    top_logprobs: int | None = 0
    top_p: float | None = None
    truncation: Literal["auto", "disabled"] | None = "disabled"
    user: str | None = None
    request_id: str | None = None
