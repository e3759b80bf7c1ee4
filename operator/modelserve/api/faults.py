"""What can go wrong on emulated nodes: items of a GPUPool's ``faults`` and of the annotation.

Annotation ``emulator.modelserve.dev/faults`` of a pod, a node or a pool holds a JSON list of them.
"""

import json
from enum import StrEnum
from typing import Annotated

import pydantic
from pydantic import ConfigDict, Field

from modelserve import errors
from modelserve.api import names, timestamps
from modelserve.api.schema import Node, Rule, rules


class FaultType(StrEnum):
    """Kinds of faults; the last four befall a node as a whole."""

    IMAGE_PULL_ERROR = "ImagePullError"
    SLOW_REGISTRY = "SlowRegistry"
    SLOW_STORAGE = "SlowStorage"
    CORRUPT_WEIGHTS = "CorruptWeights"
    OUT_OF_GPU_MEMORY = "OutOfGPUMemory"
    CRASH_LOOP = "CrashLoop"
    XID = "XID"
    HUNG_ENGINE = "HungEngine"
    SLOW_ENGINE = "SlowEngine"
    NODE_LOST = "NodeLost"
    LEASE_LAPSE = "LeaseLapse"
    GPUS_VANISH = "GPUsVanish"
    SPOT_RECLAIM = "SpotReclaim"


OF_NODES = (
    FaultType.NODE_LOST,
    FaultType.LEASE_LAPSE,
    FaultType.GPUS_VANISH,
    FaultType.SPOT_RECLAIM,
)
MOST_FAULTS = 64
# Where a fault's own fields act, and what is said of one elsewhere.
_FIELDS = {
    "factor": ("SlowRegistry", "SlowStorage", "SlowEngine"),
    "image": ("ImagePullError",),
    "message": ("ImagePullError",),
    "exitCode": ("CrashLoop",),
    "xid": ("XID",),
    "gpus": ("XID", "GPUsVanish"),
    "noticeSeconds": ("SpotReclaim",),
}


def _acts(field: str, kinds: tuple[str, ...]) -> Rule:
    quoted = ", ".join(f"'{kind}'" for kind in kinds)
    return Rule(
        f"!has(self.{field}) || self.type in [{quoted}]",
        f"{field} acts only in faults of type {' or '.join(kinds)}",
        f".{field}",
    )


class Fault(Node):
    """Something that goes wrong, from a moment on, for a while or for good."""

    type: FaultType = Field(description="What goes wrong.")
    name: Annotated[str, Field(max_length=63)] | None = Field(
        None, description="By which `servelab fault clear` finds it."
    )
    at: Annotated[str, Field(max_length=40)] | None = Field(
        None, description="When it begins, RFC 3339; left out: when pod or node began."
    )
    after_seconds: Annotated[float, Field(ge=0, le=31_536_000)] = Field(
        0, description="Emulated seconds after that."
    )
    duration_seconds: Annotated[float, Field(gt=0, le=31_536_000)] | None = Field(
        None, description="Emulated seconds that it lasts; left out: for good."
    )
    probability: Annotated[float, Field(ge=0, le=1)] = Field(
        1, description="Share of the pods, or nodes, that it befalls."
    )
    seed: Annotated[int, Field(ge=0, le=2_147_483_647)] = Field(
        0, description="Draws others of them."
    )
    nodes: list[Annotated[str, Field(min_length=1, max_length=253)]] = Field(
        default=[], max_length=64, description="Only on these nodes; empty: on all."
    )
    container: Annotated[str, Field(max_length=63)] | None = Field(
        None, description="Only this container of the pod."
    )
    image: Annotated[str, Field(max_length=1024)] | None = Field(
        None, description="Only pulls of this image. ImagePullError only."
    )
    message: Annotated[str, Field(max_length=1024)] | None = Field(
        None, description="The registry's words. ImagePullError only."
    )
    factor: Annotated[float, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="How many times as slow, 10 if left out. Slow… only."
    )
    exit_code: Annotated[int, Field(ge=0, le=255)] | None = Field(
        None, description="Exit code, 1 if left out. CrashLoop only."
    )
    xid: Annotated[int, Field(ge=1, le=999)] | None = Field(
        None, description="The driver's number, 79 (fallen off the bus) if left out. XID only."
    )
    gpus: Annotated[int, Field(ge=1, le=64)] | None = Field(
        None, description="How many of a node's GPUs; left out: 1 for XID, all for GPUsVanish."
    )
    notice_seconds: Annotated[float, Field(ge=0, le=86_400)] | None = Field(
        None, description="From notice to end, 120 emulated if left out. SpotReclaim only."
    )
    model_config = Node.model_config | ConfigDict(
        json_schema_extra=rules(
            *(_acts(field, kinds) for field, kinds in _FIELDS.items()),
            Rule(
                "!has(self.at) || self.at.matches('^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9:.]{8,18}"
                "([Zz]|[+-][0-9]{2}:[0-9]{2})$')",
                "at must be a time in RFC 3339, such as 2026-11-30T09:00:00Z",
                ".at",
            ),
        )
    )

    @pydantic.model_validator(mode="after")
    def _fields_act(self) -> "Fault":
        for field, kinds in _FIELDS.items():
            attribute = next(k for k, v in type(self).model_fields.items() if v.alias == field)
            if getattr(self, attribute) is not None and self.type not in kinds:
                raise ValueError(_acts(field, kinds).message)
        if self.at is not None and timestamps.parse_if_any(self.at) is None:
            raise ValueError("at must be a time in RFC 3339, such as 2026-11-30T09:00:00Z")
        return self

    @property
    def of_node(self) -> bool:
        """Whether it befalls a node as a whole."""
        return self.type in OF_NODES


class _Strict(Fault):
    """As written by hand: unknown words are told."""

    model_config = Fault.model_config | ConfigDict(extra="forbid")


def parse(text: str, where: str) -> tuple[Fault, ...]:
    """The faults of an annotation; ``where`` names its object. Raises InputError."""
    place = f"annotation {names.FAULTS} of {where}"
    if not text.strip():
        return ()
    try:
        found = json.loads(text)
    except ValueError as error:
        raise errors.InputError(f"{place} is no JSON: {error}") from error
    if not isinstance(found, list) or len(found) > MOST_FAULTS:
        raise errors.InputError(f"{place} must be a list of at most {MOST_FAULTS} faults")
    return tuple(_one(item, f"{place}: item {number}") for number, item in enumerate(found))


def _one(item: object, place: str) -> Fault:
    try:
        _Strict.model_validate(item)
        return Fault.model_validate(item)
    except pydantic.ValidationError as error:
        raise errors.InputError(f"{place}: {sentence(error)}") from error


def sentence(error: pydantic.ValidationError) -> str:
    """What is wrong first, with its place."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: " * bool(where) + first["msg"].removeprefix("Value error, ")


def render(faults: tuple[Fault, ...]) -> str:
    """The annotation's text."""
    dumped = (
        fault.model_dump(mode="json", by_alias=True, exclude_defaults=True) for fault in faults
    )
    return json.dumps(list(dumped), separators=(",", ":"))
