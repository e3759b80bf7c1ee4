"""Contracts between the processes, apart from the custom resources and names.

Gateway → operator: ``GET /demand`` on the internal port (bearer token) streams newline-delimited
JSON, one ``DemandSnapshot`` a line: a full one first, then one within 10 ms of a change that
matters (none → some, some → none, a doubling) and at least one a second. ``POST /fence``,
``/unfence`` and ``/share`` take and return the JSON of the classes below. Durations are real
seconds, except where a name says emulated.

Emulator → everyone: annotation ``modelserve.dev/phases`` holds ``PhaseStamps`` as JSON, in
milliseconds.
"""

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Self

DEMAND_PATH = "/demand"
FENCE_PATH = "/fence"
UNFENCE_PATH = "/unfence"
SHARE_PATH = "/share"

LEASE_RENEW_REAL_S = 3.0
LEASE_LAPSE_REAL_S = 10.0
FENCE_LAPSE_REAL_S = 3.0
FENCE_ANSWER_REAL_S = 1.0
SNAPSHOT_REAL_S = 1.0
SNAPSHOT_DELAY_REAL_S = 0.01
PROBE_PERIOD_REAL_S = 0.05
SCRAPE_PERIOD_REAL_S = 1.0
SCRAPE_STALE_REAL_S = 3.0
REFUSED_WINDOW_REAL_S = 30.0
IN_FLIGHT_FACTOR = 1.25
# The operator deals a gateway its share with the first figures it hears of it.
SHARE_AWAITED_REAL_S = 3.0


@dataclass(frozen=True, slots=True)
class ModelDemand:
    """One model at one gateway. Counters run since the gateway's start (its epoch)."""

    namespace: str
    name: str
    held: int = 0
    oldest_held_s: float = 0.0
    refused_recently: int = 0
    in_flight: dict[str, int] = field(default_factory=dict)  # by pod UID
    admitted: tuple[str, ...] = ()  # UIDs of pods a probe found ready before Kubernetes did
    arrivals: int = 0
    completions: int = 0
    service_sum_s: float = 0.0  # emulated seconds from release to last byte, over completions
    fenced: str = ""  # fence id in force

    @classmethod
    def parse(cls, data: dict[str, Any]) -> Self:
        """Read one model of a snapshot; unknown fields are left aside."""
        known = {k: v for k, v in data.items() if k in cls.__dataclass_fields__}
        known["admitted"] = tuple(known.get("admitted", ()))
        return cls(**known)


@dataclass(frozen=True, slots=True)
class DemandSnapshot:
    """All models of one gateway with any traffic since its start."""

    gateway: str
    epoch: str
    sequence: int
    models: tuple[ModelDemand, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The JSON object of one line of the stream."""
        return asdict(self)

    @classmethod
    def parse(cls, data: dict[str, Any]) -> Self:
        """Read one line of the stream."""
        models = tuple(ModelDemand.parse(m) for m in data.get("models", ()))
        return cls(str(data["gateway"]), str(data["epoch"]), int(data["sequence"]), models)


@dataclass(frozen=True, slots=True)
class FenceRequest:
    """Ask a gateway to send nothing more to these pods."""

    namespace: str
    name: str
    fence_id: str
    pod_uids: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "name": self.name,
            "fenceId": self.fence_id,
            "podUIDs": list(self.pod_uids),
        }

    @classmethod
    def parse(cls, data: dict[str, Any]) -> Self:
        return cls(
            str(data["namespace"]),
            str(data["name"]),
            str(data["fenceId"]),
            tuple(str(u) for u in data["podUIDs"]),
        )


@dataclass(frozen=True, slots=True)
class FenceAnswer:
    """Granted only when nothing is held for the model and nothing in flight to the pods."""

    granted: bool
    held: int
    in_flight: int

    def to_json(self) -> dict[str, Any]:
        return {"granted": self.granted, "held": self.held, "inFlight": self.in_flight}

    @classmethod
    def parse(cls, data: dict[str, Any]) -> Self:
        return cls(bool(data["granted"]), int(data["held"]), int(data["inFlight"]))


@dataclass(frozen=True, slots=True)
class Share:
    """The most requests this gateway may have in flight at one replica of the model."""

    namespace: str
    name: str
    in_flight_per_replica: int

    def to_json(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "name": self.name,
            "inFlightPerReplica": self.in_flight_per_replica,
        }

    @classmethod
    def parse(cls, data: dict[str, Any]) -> Self:
        return cls(str(data["namespace"]), str(data["name"]), int(data["inFlightPerReplica"]))


class Phase(StrEnum):
    """Phases of a cold start, in order; the reason of pod condition modelserve.dev/Starting."""

    SCHEDULING = "Scheduling"
    PROVISIONING = "Provisioning"
    IMAGE_PULL = "ImagePull"
    WEIGHT_LOAD = "WeightLoad"
    WARM_UP = "WarmUp"
    PROBE = "Probe"
    STARTED = "Started"


@dataclass(frozen=True, slots=True)
class PhaseStamp:
    """One phase: Unix milliseconds (real) of its start and end; end 0 while it runs.

    ``planned_ms`` is the emulated duration it was given, without contention; ``expected_ms`` what
    others on its links make of that, while it runs and where that differs. The emulated duration
    that passed is (end - start) × time scale.
    """

    phase: Phase
    start_ms: int
    end_ms: int = 0
    planned_ms: int = 0
    expected_ms: int = 0


@dataclass(frozen=True, slots=True)
class PhaseStamps:
    """The cold start of one pod so far."""

    time_scale: float
    stamps: tuple[PhaseStamp, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "timeScale": self.time_scale,
            "stamps": [
                {
                    "phase": str(s.phase),
                    "start": s.start_ms,
                    "end": s.end_ms,
                    "planned": s.planned_ms,
                    **({"expected": s.expected_ms} if s.expected_ms else {}),
                }
                for s in self.stamps
            ],
        }

    @classmethod
    def parse(cls, data: dict[str, Any]) -> Self:
        stamps = tuple(
            PhaseStamp(
                Phase(s["phase"]),
                int(s["start"]),
                int(s.get("end", 0)),
                int(s.get("planned", 0)),
                int(s.get("expected", 0)),
            )
            for s in data.get("stamps", ())
        )
        return cls(float(data.get("timeScale", 1.0)), stamps)

    def emulated_s(self, phase: Phase) -> float:
        """Emulated seconds the phase took; 0 if it did not happen or still runs."""
        done = (s for s in self.stamps if s.phase is phase and s.end_ms)
        return sum(s.end_ms - s.start_ms for s in done) / 1000 * self.time_scale
