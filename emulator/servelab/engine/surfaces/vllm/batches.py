"""Several conversations in one request: ``/v1/chat/completions/batch``."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from servelab.engine.calls import Call, Served
from servelab.engine.replying import Choice
from servelab.engine.surfaces.vllm import (
    bodies,
    chunks,
    messages,
    orders,
    protocol,
    reading,
    refusals,
    replies,
    tags,
)
from servelab.engine.surfaces.vllm.messages import Messages
from servelab.engine.surfaces.vllm.refusals import Refusal


def _not_empty(said: Sequence[Any]) -> Sequence[Any]:
    if not said:
        raise PydanticCustomError("too_short", "List should have at least 1 item after validation")
    return said


Conversation = Annotated[Messages, AfterValidator(_not_empty)]


class BatchRequest(bodies.Rendered):
    """What a chat may hold, less streams and tools; its conversations share all wishes.

    What it does not know is looked at once it stands in the chats that it is made into.
    """

    told_in = orders.BATCH
    model_config = ConfigDict(extra="allow")

    messages: Annotated[list[Conversation], Field(min_length=1)]
    model: str | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    logprobs: bool | None = False
    top_logprobs: bodies.Count = 0
    logprob_token_ids: list[int] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: int | None = 1
    presence_penalty: float | None = None
    response_format: Any = None
    seed: bodies.Seed | None = None
    stop: bodies.Stop = None
    temperature: float | None = None
    top_p: float | None = None
    user: str | None = None
    tool_choice: Literal["none"] | None = "none"
    include_reasoning: bool = True
    best_of: int | None = None
    use_beam_search: bool = False
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    watermarking: bool | None = None
    length_penalty: float | None = 1.0
    early_stopping: bool = False
    structured_outputs: bodies.StructuredOutputs | None = None
    request_id: str | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    chat_template: str | None = None
    priority: int = Field(default=0, ge=bodies.INT64_MIN, le=bodies.INT64_MAX)
    cache_salt: str | None = None
    include_stop_str_in_output: bool = False
    guided_decoding_backend: str | None = None
    echo: bool = False
    return_tokens_as_token_ids: bool | None = None
    return_token_ids: bool = False

    @model_validator(mode="before")
    @classmethod
    def as_it_came(cls, data: Any) -> Any:
        """The checks that come before the schema. Raises Refusal."""
        if isinstance(data, dict):
            _check(data)
        return data


def _check(body: dict[str, Any]) -> None:
    if body.get("use_beam_search"):
        raise Refusal("A batch takes no beam search.", param="use_beam_search")
    if body.get("logprob_token_ids") and not body.get("logprobs"):
        raise Refusal("logprob_token_ids needs logprobs: true.", param="logprob_token_ids")
    given = body.get("kv_transfer_params")
    if isinstance(given, dict) and given.get("prompt_token_ids") is not None:
        name = "kv_transfer_params.prompt_token_ids"
        raise Refusal("A batch takes no prompt that is tokens already.", param=name)
    form, wanted = body.get("response_format"), body.get("structured_outputs")
    if isinstance(form, dict) and form.get("type") == "structural_tag":
        tags.check(form, "response_format")
    if isinstance(wanted, dict) and wanted.get("structural_tag") is not None:
        tags.check_text(wanted["structural_tag"], "structured_outputs")
    if body.get("n", 1) not in (None, 1):
        raise Refusal("A batch gives one answer to each conversation: leave n out.", param="n")


def parse(raw: bytes, content_type: str, served: Served) -> Call:
    """A batch as one call of several prompts. Raises Refusal."""
    asked = reading.load(raw, content_type)
    request = reading.validate(BatchRequest, asked)
    protocol.check_model(request.model, served)
    shared = request.model_dump(exclude={"messages"}, exclude_none=True, by_alias=True)
    calls = [_single(shared | {"messages": said}, served) for said in asked["messages"]]
    late = next((call.late for call in calls if call.late is not None), None)
    if late is not None:
        raise late
    prompts = tuple(prompt for call in calls for prompt in call.prompts)
    echo = any(call.echo for call in calls)
    return calls[0]._replace(prompts=prompts, echo=echo, tells_cached=False, stream=False)


def _single(body: dict[str, Any], served: Served) -> Call:
    """One conversation as the chat it is. Raises Refusal."""
    try:
        request = bodies.ChatRequest.model_validate(body)
    except ValidationError as error:
        told = refusals.schema(error.errors(include_url=False))
        raise Refusal(str(told)) from None
    try:
        messages.check_calls(body["messages"])
    except Refusal as refusal:
        raise Refusal(str(refusal)) from None
    return protocol.chat(request, body["messages"], served)


class Reply(replies.Whole):
    """One answer with a choice for each conversation; it tells of no prompt."""

    def choice(self, choice: Choice) -> chunks.Piece:
        told = super().choice(choice)
        return told._replace(
            prompt_token_ids=None, prompt_logprobs=None, prompt_text=None, weight_versions=None
        )
