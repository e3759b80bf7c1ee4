"""What the operator remembers of one ModelServe; what must survive a restart is in the status."""

from dataclasses import dataclass, field

from modelserve import ports
from modelserve.api import spec as specs
from modelserve.api import status as statuses
from modelserve.decide import coldstart, failing, judging, prediction, state
from modelserve.decide.counters import Counters
from modelserve.decide.record import Decision
from modelserve.decide.settle import Settle
from modelserve.reconciling.children import Applied
from modelserve.reconciling.sightings import Sighting
from modelserve.reconciling.world import Uid

# Weight of one measured cold start in the mean, once there are several.
SMOOTHING = 0.3
HISTORY = 10


@dataclass(slots=True)
class Memory:
    """One ModelServe. Rebuilt from its status after a restart."""

    uid: str
    scaler: state.ScalerState
    status: statuses.ModelServeStatus
    generation: int = -1
    spec: specs.ModelServeSpec | None = None
    assessment: prediction.Assessment | prediction.Problem | None = None
    counters: Counters = field(default_factory=Counters)
    failure: failing.Failure | None = None  # of the last start, if none has succeeded since
    settle: Settle = field(default_factory=Settle)
    sightings: dict[Uid, Sighting] = field(default_factory=dict)
    looked_s: float = float("-inf")  # when its pods were last looked at, emulated
    applied: Applied = field(default_factory=Applied)
    decision: Decision | None = None
    written_count: int | None = None
    status_real_s: float = float("-inf")  # when the status was last written
    wake_seen: str | None = None  # the wake annotation's value that was acted on
    held_since_real_s: float | None = None  # first held request of a wake that is to be written

    @classmethod
    def restore(cls, modelserve: ports.Object, now_s: float) -> "Memory":
        """From the object's own status, as an operator left it before us."""
        raw = modelserve.get("status") or {}
        saved = parse_status(raw)
        memory = cls(
            uid=modelserve["metadata"]["uid"],
            scaler=state.from_status(saved.autoscaler, now_s),
            status=saved,
        )
        memory.written_count = saved.autoscaler.written_replicas if saved.autoscaler else None
        told = judging.failed_start(saved, int(modelserve["metadata"].get("generation", 0)))
        memory.failure = failing.Failure(now_s, told) if told else None
        return memory

    def measured(self) -> statuses.ColdStartParts | None:
        """The mean of measured cold starts."""
        return self.status.cold_start.measured if self.status.cold_start else None


def parse_status(raw: ports.Object) -> statuses.ModelServeStatus:
    """A status as far as it can be read: one that somebody broke counts as none."""
    try:
        return statuses.ModelServeStatus.model_validate(raw)
    except ValueError:
        return statuses.ModelServeStatus()


def parts(cold_start: coldstart.ColdStart) -> statuses.ColdStartParts:
    """A cold start as the status says it, to the millisecond."""
    named = {name: round(value, 3) for name, value in cold_start.parts().items()}
    return statuses.ColdStartParts.model_validate(named)


def mean(
    known: statuses.ColdStartParts | None, sample: statuses.ColdStartParts
) -> statuses.ColdStartParts:
    """The exponential mean by part, with one more sample taken in."""
    if known is None or not known.samples:
        return sample.model_copy(update={"samples": 1})
    weight = max(SMOOTHING, 1 / (known.samples + 1))
    fields = [name for name in statuses.ColdStartParts.model_fields if name != "samples"]
    merged = {
        name: round(
            getattr(known, name) + (getattr(sample, name) - getattr(known, name)) * weight, 3
        )
        for name in fields
    }
    return statuses.ColdStartParts(**merged, samples=known.samples + 1)


def with_record(
    history: list[statuses.ScaleRecord], record: statuses.ScaleRecord
) -> list[statuses.ScaleRecord]:
    """The newest ten, newest first."""
    return [record, *history][:HISTORY]
