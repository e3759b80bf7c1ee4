"""What is to be tokenized, and back: the bodies of vLLM 0.33."""

import contextlib
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from servelab.engine.surfaces.vllm import bodies, orders, reading, refusals, rules
from servelab.engine.surfaces.vllm.messages import Messages


class Prompt(bodies.Body):
    model: str | None = None
    prompt: str
    add_special_tokens: bool = True
    return_token_strs: bool | None = False
    # No fields of vLLM's schema, but it looks for them.
    mm_processor_kwargs: Any = None
    media_io_kwargs: Any = None


class Chat(bodies.Rendered):
    told_in = orders.TOKENIZE_CHAT

    model: str | None = None
    messages: Messages
    add_generation_prompt: bool = True
    return_token_strs: bool | None = False
    continue_final_message: bool = False
    add_special_tokens: bool = False
    chat_template: str | None = None
    tools: list[bodies.Tool] | None = None

    @model_validator(mode="before")
    @classmethod
    def as_it_came(cls, data: Any) -> Any:
        """The check that comes before the schema."""
        if isinstance(data, dict):
            rules.generation_prompt(data)
        return data


class Tokens(bodies.Body):
    model: str | None = None
    tokens: list[Annotated[int, Field(ge=0, le=bodies.INT64_MAX)]]


_EITHER: TypeAdapter[Prompt | Chat] = TypeAdapter(Prompt | Chat)


def read(document: Any) -> Prompt | Chat:
    """What to tokenize: a prompt or messages. Raises Refusal."""
    with contextlib.suppress(ValidationError):
        return _EITHER.validate_python(document)
    wrong: list[Any] = []
    for kind in (Prompt, Chat):
        try:
            kind.model_validate(document)
        except ValidationError as error:
            wrong += reading.errors(error, kind.told_in)
    raise refusals.schema(wrong)
