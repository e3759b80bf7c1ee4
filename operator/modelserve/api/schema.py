"""The ground the API's models stand on: base class, CEL rules, field types with their bounds."""

import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from modelserve import errors
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


def _checked(parse: Callable[[str], float]) -> AfterValidator:
    """The text itself, once ``parse`` could read it."""

    def check(text: str) -> str:
        try:
            parse(text)
        except errors.QuantityError as error:
            raise ValueError(str(error)) from error
        return text

    return AfterValidator(check)


Name = Annotated[str, Field(min_length=1, max_length=253)]
# CEL rather than ``pattern``: the server answers with the sentence, not with the expression.
Bytes = Annotated[
    str,
    Field(
        max_length=32,
        json_schema_extra=rules(
            Rule(
                f"self.matches(r'{quantities.BYTES_PATTERN}')",
                "is no size; write for instance 9GB or 256MiB",
            )
        ),
    ),
    _checked(quantities.parse_bytes),
]
Rate = Annotated[
    str,
    Field(
        max_length=32,
        json_schema_extra=rules(
            Rule(
                f"self.matches(r'{quantities.RATE_PATTERN}')",
                "is no rate; write for instance 2GB/s or 500MiB/s",
            ),
            Rule(
                "!self.matches('^0+([.]0*)?[^0-9.]')",
                "a rate must be greater than zero, such as 2GB/s: nothing would ever arrive",
            ),
        ),
    ),
    _checked(quantities.parse_rate),
]
_AMOUNT = r"^[0-9]+([.][0-9]+)?(m|k|Ki|[MGTPE]i?)?$"


def _amount(text: str) -> str:
    if not re.match(_AMOUNT, text):
        raise ValueError(f"{text!r} is no amount; write for instance 96, 512Gi or 1Ti")
    if not text.strip("0.mkKMGTPEi"):
        raise ValueError(f"{text!r} must be greater than zero")
    return text


# A Kubernetes quantity, of cores or bytes.
Amount = Annotated[
    str,
    Field(
        max_length=32,
        json_schema_extra=rules(
            Rule(
                f"self.matches('{_AMOUNT}')",
                "is no amount; write for instance 96, 512Gi or 1Ti",
            ),
            Rule("!self.matches('^[0.]+[a-zA-Z]*$')", "must be greater than zero"),
        ),
    ),
    AfterValidator(_amount),
]
Seconds = Annotated[int, Field(ge=0, le=86_400)]
Window = Annotated[int, Field(ge=0, le=86_400)]


class Node(BaseModel):
    """Base of all parts of the API: camelCase outside, frozen, unknown fields ignored.

    The API server prunes or refuses unknown fields; an older operator still reads newer objects.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="ignore",
        # A file of YAML has ``.nan``, which no bound says well.
        allow_inf_nan=False,
    )
