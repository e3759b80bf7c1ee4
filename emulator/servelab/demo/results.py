"""What the demo found out, and what it says about it. Pure.

Waits are emulated seconds (real ones × time scale), as the engines' own times are; latencies of
our processes are real ones, because no scale makes them quicker.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from servelab.report import figures
from servelab.trial import answer

Steps = Sequence[tuple[float, float]]
# Names in status.coldStart → words in the table, in the order of a cold start.
PARTS: Mapping[str, str] = {
    "schedulingSeconds": "scheduling",
    "provisioningSeconds": "node provisioning",
    "imagePullSeconds": "image pull",
    "weightLoadSeconds": "weight load",
    "warmUpSeconds": "warm-up",
    "probeSeconds": "probe",
    "totalSeconds": "in all",
}


@dataclass(frozen=True, slots=True)
class Wake:
    """Moments of the wake-up, in real seconds after the request was sent, as a watch saw them.

    ``activation_s`` is the operator's own account: first held request → count written.
    """

    scale_write_s: float
    bound_s: float
    first_byte_s: float
    activation_s: float = math.nan


@dataclass(frozen=True, slots=True)
class Result:
    """The whole run. Series are (emulated seconds since the first request, value from then on).

    ``late_real_s``: by how much the load client sent each request after its time. If that grows,
    this machine was too busy for the time scale, and the waits are its own.
    """

    time_scale: float
    wall_s: float
    length_s: float
    cold: Sequence[answer.Outcome]
    warm: Sequence[answer.Outcome]
    scaled_to_zero: bool
    wake: Wake
    predicted: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[str, float] = field(default_factory=dict)
    replicas: Steps = ()
    gpus_per_replica: int = 1
    late_real_s: Sequence[float] = ()

    @property
    def outcomes(self) -> Sequence[answer.Outcome]:
        """All requests."""
        return [*self.cold, *self.warm]

    @property
    def failures(self) -> Sequence[answer.Outcome]:
        """Requests that did not get their answer."""
        return [outcome for outcome in self.outcomes if outcome.problem]

    @property
    def ok(self) -> bool:
        """Every request got its answer, and the model is back at zero."""
        return bool(self.outcomes) and not self.failures and self.scaled_to_zero

    @property
    def peak_replicas(self) -> int:
        """Most replicas at any moment."""
        return int(max((value for _, value in self.replicas), default=0))

    @property
    def gpu_minutes(self) -> float:
        """Emulated minutes × GPUs that pods had which were not on their way out."""
        return figures.area(self.replicas, self.length_s) * self.gpus_per_replica / 60

    def waits_s(self, outcomes: Sequence[answer.Outcome]) -> list[float]:
        """Emulated seconds from request to first token, of those that got one."""
        return [o.wait_real_s * self.time_scale for o in outcomes if o.first_real_s]

    def percentiles(self, outcomes: Sequence[answer.Outcome]) -> tuple[float, float, float]:
        """p50, p95 and p99 of the waits, in emulated seconds."""
        waits = self.waits_s(outcomes)
        return (
            figures.percentile(waits, 0.5),
            figures.percentile(waits, 0.95),
            figures.percentile(waits, 0.99),
        )

    def to_json(self) -> dict[str, Any]:
        """What ``servelab demo --json`` prints."""
        return {
            "ok": self.ok,
            "requests": len(self.outcomes),
            "errors": len(self.failures),
            "scaled_to_zero": self.scaled_to_zero,
            "peak_replicas": self.peak_replicas,
            "ttft_cold_s": _rounded(self.percentiles(self.cold)[0]),
            "ttft_p50_s": _rounded(self.percentiles(self.warm)[0]),
            "ttft_p95_s": _rounded(self.percentiles(self.warm)[1]),
            "ttft_p99_s": _rounded(self.percentiles(self.warm)[2]),
            "cold_start": {"predicted": dict(self.predicted), "measured": dict(self.measured)},
            "gpu_minutes": round(self.gpu_minutes, 2),
            "wake_s": _rounded(self.wake.scale_write_s),
            "time_scale": self.time_scale,
            "wall_s": round(self.wall_s, 1),
        }


def parts(document: Mapping[str, Any] | None) -> dict[str, float]:
    """The parts of a cold start as status tells them, in emulated seconds."""
    return {name: float(value) for name, value in (document or {}).items() if name in PARTS}


def _rounded(value: float) -> float | None:
    return None if value != value else round(value, 4)
