"""Recordings of what Knative's and Kubernetes' own autoscalers decided for scripted demand.

A recording is a list of cases: the settings, the demand of each second, and at each tick (Knative)
or sync (Kubernetes) what was desired. What else stands there is for reading, and not compared.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Self

import pydantic

from modelserve.decide import windows
from servelab.policies import hpa, hpametrics, kpa, scalingrules

# The clock that Knative's autoscaler was run on started then, in Unix seconds; its buckets and its
# delay window count from there.
KNATIVE_START_S = 1_700_000_000

_DAY_S = 86_400
Requests = Annotated[float, pydantic.Field(ge=0, le=1e12)]
Seconds = Annotated[float, pydantic.Field(ge=0, le=_DAY_S)]
Window = Annotated[float, pydantic.Field(gt=0, le=_DAY_S)]
Target = Annotated[float, pydantic.Field(ge=0.001, le=1e9)]
Factor = Annotated[float, pydantic.Field(ge=1, le=1e6)]
Replicas = Annotated[int, pydantic.Field(ge=0, le=2**31 - 1)]


class _Shape(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(allow_inf_nan=False)


class Tick(_Shape):
    """What Knative's autoscaler found, ``t`` seconds after the start."""

    t: Replicas
    desired: Replicas
    valid: bool = True
    ready: Replicas | None = None
    stable: float | None = None
    panic: float | None = None


class Sync(_Shape):
    """What the HorizontalPodAutoscaler found, ``t`` seconds after the start."""

    t: Replicas
    desired: Replicas
    metric: float | None = None
    current: Replicas | None = None
    raw: Replicas | None = None


class KnativeCase(_Shape):
    """One run of Knative's. A second without a demand (null) is one without a report."""

    name: str
    target_per_pod: Target
    stable_window_s: Window = 60
    panic_window_s: Window = 6
    panic_threshold: Annotated[float, pydantic.Field(gt=0)] = 2
    max_scale_up_rate: Factor = 1000
    max_scale_down_rate: Factor = 2
    scale_down_delay_s: Seconds = 0
    cold_start_s: Seconds = 0
    demand_per_second: list[Requests | None]
    ticks: list[Tick]

    @pydantic.model_validator(mode="after")
    def _in_order(self) -> Self:
        _check_order(self.ticks, len(self.demand_per_second), "tick")
        return self

    def knobs(self) -> kpa.Knobs:
        """The same settings for our reading of the rules."""
        return kpa.Knobs(
            target=self.target_per_pod,
            total=self.target_per_pod,
            stable_window_s=self.stable_window_s,
            panic_window_s=self.panic_window_s,
            panic_threshold=self.panic_threshold,
            max_scale_up_rate=self.max_scale_up_rate,
            max_scale_down_rate=self.max_scale_down_rate,
            scale_down_delay_s=self.scale_down_delay_s,
        )


class Policy(_Shape):
    """One rate policy."""

    type: windows.Unit
    value: Annotated[int, pydantic.Field(gt=0, le=2**31 - 1)]
    period_s: Annotated[int, pydantic.Field(gt=0, le=1800)]


class Rules(_Shape):
    """One direction of ``behavior``; without a window the controller's own."""

    window_s: Annotated[int, pydantic.Field(ge=0, le=3600)] | None = None
    select: windows.Select = windows.Select.MAX
    policies: list[Policy] = []

    def direction(self, default: windows.Direction) -> windows.Direction:
        """The same rules for our reading."""
        window_s = default.window_s if self.window_s is None else float(self.window_s)
        rates = tuple(windows.Rate(p.type, p.value, p.period_s) for p in self.policies)
        return windows.Direction(window_s, rates, self.select)


class KubernetesCase(_Shape):
    """One run of the HorizontalPodAutoscaler's; it starts with ``min`` replicas, but at least 1."""

    name: str
    target_average_value: Target
    min: Replicas
    max: Annotated[int, pydantic.Field(ge=1, le=2**31 - 1)]
    tolerance: Annotated[float, pydantic.Field(ge=0)] = 0.1
    scale_up: Rules | None = None
    scale_down: Rules | None = None
    demand_per_second: list[Requests]
    syncs: list[Sync]

    @pydantic.model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}")
        _check_order(self.syncs, len(self.demand_per_second), "sync")
        return self

    def scaler(self) -> hpa.Hpa:
        """The same settings for our reading of the rules; it syncs whenever it is asked."""
        behavior = None
        if self.scale_up is not None or self.scale_down is not None:
            up, down = scalingrules.DEFAULT_UP, scalingrules.DEFAULT_DOWN
            behavior = scalingrules.Behavior(
                self.scale_up.direction(up) if self.scale_up else up,
                self.scale_down.direction(down) if self.scale_down else down,
            )
        return hpa.Hpa(
            (hpametrics.Metric(self.target_average_value),),
            min_replicas=self.min,
            max_replicas=self.max,
            tolerance=hpametrics.Tolerance(self.tolerance, self.tolerance),
            behavior=behavior,
            sync_s=0.0,
        )


def _check_order(rows: Sequence[Tick | Sync], seconds: int, what: str) -> None:
    last = -1
    for number, row in enumerate(rows):
        if row.t <= last:
            raise ValueError(f"{what} {number} is at {row.t} s, not after the one before it")
        if row.t >= seconds:
            raise ValueError(f"{what} {number} is at {row.t} s, but demand ends at {seconds - 1} s")
        last = row.t


def _kind(value: Any) -> str | None:
    if isinstance(value, KnativeCase) or (isinstance(value, dict) and "ticks" in value):
        return "knative"
    if isinstance(value, KubernetesCase) or (isinstance(value, dict) and "syncs" in value):
        return "kubernetes"
    return None


Case = Annotated[
    Annotated[KnativeCase, pydantic.Tag("knative")]
    | Annotated[KubernetesCase, pydantic.Tag("kubernetes")],
    pydantic.Discriminator(
        _kind,
        custom_error_type="no_case",
        custom_error_message="a case needs ticks (Knative) or syncs (Kubernetes)",
    ),
]
RECORDING: pydantic.TypeAdapter[list[KnativeCase | KubernetesCase]] = pydantic.TypeAdapter(
    list[Case]
)


def fault(error: pydantic.ValidationError) -> str:
    """What is wrong with a recording, and where, in half a sentence."""
    first = error.errors(include_url=False)[0]
    what = first["msg"].removeprefix("Value error, ")
    place = [part for part in first["loc"] if part not in ("knative", "kubernetes")]
    if not place:
        return what
    case, *rest = (str(part) for part in place)
    return f"{what}, in case {case}" + (f" at {'.'.join(rest)}" if rest else "")
