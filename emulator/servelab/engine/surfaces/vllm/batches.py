"""Several conversations in one request: ``/v1/chat/completions/batch``."""

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

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
from servelab.engine.surfaces.vllm.refusals import Refusal

Conversation = Annotated[list[Any], Field(min_length=1)]


class BatchRequest(bodies.Wishes, bodies.Rendered):
    """What a chat may hold, less streams and tools; its conversations share all wishes."""

    told_in = orders.BATCH

    messages: Annotated[list[Conversation], Field(min_length=1)]
    logprobs: bool | None = False
    top_logprobs: bodies.Count = 0
    logprob_token_ids: list[int] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: int | None = 1
    response_format: Any = None
    tool_choice: Literal["none"] | None = "none"
    include_reasoning: bool = True
    best_of: int | None = None
    use_beam_search: bool = False
    length_penalty: float | None = 1.0
    early_stopping: bool = False
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    chat_template: str | None = None
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
    prompts = tuple(prompt for call in calls for prompt in call.prompts)
    return calls[0]._replace(
        prompts=prompts, echo=any(call.echo for call in calls), tells_cached=False
    )


def _single(body: dict[str, Any], served: Served) -> Call:
    """One conversation as the chat it is. Raises Refusal."""
    try:
        request = bodies.ChatRequest.model_validate(body)
    except ValidationError as error:
        told = refusals.schema(error.errors(include_url=False))
        raise Refusal(str(told)) from None
    messages.check_calls(body["messages"])
    return protocol.chat(request, body["messages"], served)


class Reply(replies.Whole):
    """One answer with a choice for each conversation; it tells of no prompt."""

    def choice(self, choice: Choice) -> chunks.Piece:
        told = super().choice(choice)
        return told._replace(prompt_token_ids=None, prompt_logprobs=None, prompt_text=None)
