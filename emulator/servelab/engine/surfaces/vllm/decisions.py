"""Questions whose answers are read off likelihoods: ``/v1/decisions`` and ``/v1/systemone``.

There is no model here to read them off. What vLLM 0.33 refuses of a request is refused, and to the
rest it is said what it says for a model in whose prompts the labels of answers are no tokens of
their own.
"""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StrictBool, StrictStr, model_validator

from servelab.engine.exchange import Exchange, Handler, Route
from servelab.engine.surfaces.vllm import bodies, reading
from servelab.engine.surfaces.vllm.refusals import Refusal

NOT_IMPLEMENTED = "NotImplementedError"
ShortText = Annotated[StrictStr, Field(max_length=1_048_576)]
InputText = Annotated[StrictStr, Field(max_length=10_485_760)]
Salt = Annotated[str, Field(min_length=1, max_length=1024)]


class Strict(bodies.Body):
    """A part that takes no other fields."""

    model_config = ConfigDict(extra="forbid")


class Text(Strict):
    type: Literal["input_text"]
    text: InputText


class Message(Strict):
    role: Literal["user"]
    content: InputText | Annotated[list[Text], Field(max_length=16_384)]
    type: Literal["message"] = "message"

    @model_validator(mode="before")
    @classmethod
    def without_images(cls, data: Any) -> Any:
        """Text is taken and nothing else."""
        parts = data.get("content") if isinstance(data, dict) else None
        parts = parts if isinstance(parts, list) else []
        if any(isinstance(part, dict) and part.get("type") == "input_image" for part in parts):
            raise ValueError("Decisions supports text input only; images are not supported")
        return data


class Question(Strict):
    instructions: ShortText
    name: ShortText | None = None

    @model_validator(mode="after")
    def named(self) -> "Question":
        """A name that is given is a text."""
        if "name" in self.model_fields_set and self.name is None:
            raise ValueError("name must be a string when provided")
        return self


class Predicate(Question):
    type: Literal["predicate"]


class Option(Strict):
    value: StrictStr | StrictBool
    description: ShortText = ""


class Choice(Question):
    type: Literal["choice"]
    choices: Annotated[list[Option], Field(min_length=2, max_length=255)]

    @model_validator(mode="after")
    def distinct(self) -> "Choice":
        """No two are the same."""
        values = {(type(each.value), each.value) for each in self.choices}
        if len(values) != len(self.choices):
            raise ValueError("choice values must be distinct")
        return self


class Level(Strict):
    label: ShortText
    description: ShortText = ""


class Score(Question):
    type: Literal["score"]
    levels: Annotated[list[Level], Field(min_length=2, max_length=10)]


class DecisionRequest(bodies.Salted, Strict):
    model: ShortText
    input: InputText | Annotated[list[Message], Field(max_length=131_072)]
    questions: Annotated[
        list[Annotated[Predicate | Choice | Score, Field(discriminator="type")]],
        Field(min_length=1, max_length=200),
    ]
    safety_identifier: Annotated[StrictStr, Field(max_length=128)] | None = None
    joint: StrictBool = False
    cache_salt: Salt | None = None


class Asked(bodies.Body):
    """A question by its id; fields of it that nobody knows are told of later."""

    type: str
    instructions: Any = ""
    criteria: Any = None


class StructuredRequest(bodies.Salted, Strict):
    model: str | None = None
    state: Any = Field(...)
    questions: dict[str, Asked] = Field(...)
    instructions: str | None = None
    images: list[str] | None = None
    audio: list[str] | None = None
    videos: list[str] | None = None
    chat_template_kwargs: bodies.Arguments | None = None
    joint: StrictBool = False
    cache_salt: str | None = None
    priority: int = Field(default=0, ge=bodies.INT64_MIN, le=bodies.INT64_MAX)
    request_id: str = ""


def routes() -> tuple[Route, ...]:
    """Where questions are asked."""
    return (
        Route("POST", "/v1/decisions", _refuse(DecisionRequest, "Decisions"), aside=True),
        Route(
            "POST", "/v1/systemone", _refuse(StructuredRequest, "structured decision"), aside=True
        ),
    )


def _refuse(kind: type[bodies.Body], what: str) -> Handler:
    def handle(exchange: Exchange) -> None:
        request = exchange.request
        reading.validate(kind, reading.load(request.body, request.content_type))
        message = f"The model does not support the {what} API"
        raise Refusal(message, status=501, kind=NOT_IMPLEMENTED)

    return handle
