"""What a client writes: queue metrics as waves, and faults. JSON, checked by pydantic."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from modelserve import errors
from servelab.engine.admin import waves

# A day of emulated time is the longest that a test can want, a million the most that can wait; a
# wave of less than a millisecond is none.
Seconds = Annotated[float, Field(strict=True, ge=0, le=86_400)]
Positive = Annotated[float, Field(strict=True, ge=0.001, le=86_400)]
Figure = Annotated[float, Field(strict=True, ge=0, le=1_000_000)]

Parsed = TypeVar("Parsed")


class Timed(BaseModel):
    """Emulated seconds from now until it starts, and how long it lasts; left out: for ever."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    start_s: Seconds = 0.0
    for_s: Positive | None = None

    @property
    def span(self) -> waves.Span:
        """When it holds."""
        return waves.Span(self.start_s, self.for_s)


class Fixed(Timed):
    """One value; a bare number means the same."""

    shape: Literal["fixed"] = "fixed"
    value: Figure

    @property
    def wave(self) -> waves.Wave:
        """As a function of time."""
        return waves.Fixed(self.value)


class Ramp(Timed):
    """A line from one value to another; then it holds, or repeats."""

    shape: Literal["ramp"]
    from_: Figure = Field(alias="from")
    to: Figure
    over_s: Positive
    then: waves.Then = waves.Then.HOLD

    @property
    def wave(self) -> waves.Wave:
        """As a function of time."""
        return waves.Ramp(self.from_, self.to, self.over_s, self.then)


class Square(Timed):
    """Low, then high for the share ``duty`` of each period."""

    shape: Literal["square"]
    low: Figure
    high: Figure
    period_s: Positive
    duty: Annotated[float, Field(strict=True, gt=0, lt=1)] = 0.5

    @property
    def wave(self) -> waves.Wave:
        """As a function of time."""
        return waves.Square(self.low, self.high, self.period_s, self.duty)


class Sine(Timed):
    """From low to high and back in each period."""

    shape: Literal["sine"]
    low: Figure
    high: Figure
    period_s: Positive

    @property
    def wave(self) -> waves.Wave:
        """As a function of time."""
        return waves.Sine(self.low, self.high, self.period_s)


def _fixed(value: Any) -> Any:
    """A bare number as the fixed wave that it means."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number or (isinstance(value, dict) and "shape" not in value and "value" in value):
        return {"shape": "fixed", **(value if isinstance(value, dict) else {"value": value})}
    return value


WaveDocument = Annotated[
    Annotated[Fixed | Ramp | Square | Sine, Field(discriminator="shape")],
    pydantic.BeforeValidator(_fixed),
]


def _share(document: Fixed | Ramp | Square | Sine) -> Fixed | Ramp | Square | Sine:
    """Both ends of a share are at most 1."""
    high = max(value for value in _ends(document))
    if high > 1:
        raise ValueError(f"a share is at most 1, not {high:g}")
    return document


def _ends(document: Fixed | Ramp | Square | Sine) -> tuple[float, ...]:
    match document:
        case Fixed():
            return (document.value,)
        case Ramp():
            return document.from_, document.to
        case _:
            return document.low, document.high


class Queue(BaseModel):
    """Queue metrics that are not the truth; those left out are."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    running: WaveDocument | None = None
    waiting: WaveDocument | None = None
    kv_usage: Annotated[WaveDocument, pydantic.AfterValidator(_share)] | None = None


class Slow(Timed):
    """Each step takes so many times as long."""

    factor: Annotated[float, Field(strict=True, gt=0, le=10_000)]


class Hang(Timed):
    """No step ends. With ``health: silent`` nothing is answered at all, health included."""

    health: Literal["answers", "silent"] = "answers"


class Errors(Timed):
    """A share of the requests for generation fails: 503 as if the queue were full, or 500."""

    share: Annotated[float, Field(strict=True, gt=0, le=1)] = 1.0
    status: Literal[500, 503] = 503
    seed: int = 0


class Unready(Timed):
    """Health checks (not those of mere liveness) answer as those of an engine that loads."""


class StaleMetrics(Timed):
    """Each scrape brings what the first one in the time brought."""


class ScrapeGap(Timed):
    """Scrapes are answered with 503, or not until it is over."""

    answer: Literal["503", "silent"] = "503"


class CounterReset(BaseModel):
    """Counters and histograms start from zero again, as after a restart; again every so often."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    start_s: Seconds = 0.0
    every_s: Positive | None = None


class Exit(BaseModel):
    """The engine's process ends at once, with this code."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    start_s: Seconds = 0.0
    code: Annotated[int, Field(ge=0, le=255)] = 1


class Faults(BaseModel):
    """What goes wrong, at most one of each kind."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    slow: Slow | None = None
    hang: Hang | None = None
    errors: Errors | None = None
    unready: Unready | None = None
    stale_metrics: StaleMetrics | None = None
    scrape_gap: ScrapeGap | None = None
    counter_reset: CounterReset | None = None
    exit: Exit | None = None


METRICS = tuple(Queue.model_fields)
KINDS = tuple(Faults.model_fields)


def parse(kind: type[Parsed], raw: bytes) -> Parsed:
    """A document. Raises InputError that names the place and what is wrong there."""
    try:
        return pydantic.TypeAdapter(kind).validate_json(raw or b"{}")
    except pydantic.ValidationError as error:
        raise errors.InputError("; ".join(_sentence(found) for found in error.errors())) from None


def one(kind: type[BaseModel], name: str, raw: bytes) -> Mapping[str, Any]:
    """The field ``name`` of a document, alone; empty: with its defaults. Raises InputError."""
    try:
        value = json.loads(raw or b"{}", parse_constant=_no_number)
    except ValueError as error:
        raise errors.InputError(f"no JSON: {error}") from error
    return given(parse(kind, json.dumps({name: value}).encode()))


def given(document: BaseModel) -> Mapping[str, Any]:
    """The fields that are set, by name."""
    found = ((name, getattr(document, name)) for name in type(document).model_fields)
    return {name: value for name, value in found if value is not None}


def shown(fields: Mapping[str, BaseModel]) -> dict[str, Any]:
    """The same as JSON values, as a client would write them."""
    return {
        name: value.model_dump(mode="json", by_alias=True, exclude_none=True)
        for name, value in fields.items()
    }


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def _sentence(found: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in found["loc"])
    return f"{where}: {found['msg']}" if where else str(found["msg"])
