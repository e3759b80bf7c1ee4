"""The ground the API's models stand on: base class, CEL rules, field types with their bounds."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from modelserve.api import quantities


class Rule:
    """A CEL rule with the sentence a user reads when it is broken (schema key of the CRD)."""

    def __init__(self, rule: str, message: str, field_path: str | None = None) -> None:
        self.rule = rule
        self.message = message
        self.field_path = field_path

    def to_schema(self) -> dict[str, Any]:
        """The entry of ``x-kubernetes-validations``."""
        entry = {"rule": self.rule, "message": self.message}
        return entry | ({"fieldPath": self.field_path} if self.field_path else {})


def rules(*entries: Rule) -> dict[str, Any]:
    """``json_schema_extra`` of a model whose CEL rules these are."""
    return {"x-kubernetes-validations": [entry.to_schema() for entry in entries]}


Name = Annotated[str, Field(min_length=1, max_length=253)]
Bytes = Annotated[str, Field(max_length=32, pattern=quantities.BYTES_PATTERN)]
Rate = Annotated[
    str,
    Field(
        max_length=32,
        pattern=quantities.RATE_PATTERN,
        json_schema_extra=rules(
            Rule(
                "!self.matches('^0+([.]0*)?[^0-9.]')",
                "a rate must be greater than zero, such as 2GB/s: nothing would ever arrive",
            )
        ),
    ),
]
Seconds = Annotated[int, Field(ge=0, le=86_400)]
Window = Annotated[int, Field(ge=0, le=86_400)]


class Node(BaseModel):
    """Base of all parts of the API: camelCase outside, frozen, unknown fields ignored.

    The API server prunes or refuses unknown fields; an older operator still reads newer objects.
    """

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore"
    )
