"""What has been seen of each pod, and since when: emulated seconds on our own monotonic clock.

Kubernetes' stamps are whole seconds of somebody else's wall clock, which may be an hour off and may
jump. So an instant is the moment we saw the change. Only of what was there before we first looked
do stamps tell the age; what is new since the last look is no older than that.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from modelserve import ports
from modelserve.api import conditions, names, pods, timestamps, wire
from modelserve.decide import coldstart
from modelserve.decide.observation import ReplicaState

# A stamp this much older than now tells of something that happened before we looked.
TRUSTED_AGE_REAL_S = 3.0

# A gateway that sees the pod Ready before we do no longer says that it admitted it: believe it on.
ADMITTED_LINGERS_REAL_S = 2.0

# Of a container's last words; a traceback's last line may be long.
WORDS_LIMIT = 300

_BROKEN = {
    "CrashLoopBackOff",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
}


@dataclass(frozen=True, slots=True)
class Now:
    """One instant on all clocks: emulated monotonic, real monotonic, Unix; and the time scale."""

    emulated_s: float
    real_s: float
    wall_s: float
    scale: float

    def at(self, wall_s: float) -> float:
        """A Unix instant on the emulated clock; never later than now."""
        return self.emulated_s - max(0.0, self.wall_s - wall_s) * self.scale

    def wall_at(self, emulated_s: float) -> float:
        """An emulated instant as Unix seconds."""
        return self.wall_s + (emulated_s - self.emulated_s) / self.scale


@dataclass(slots=True)
class Sighting:
    """One pod's life so far."""

    created_s: float
    started_s: float | None = None
    ready_since_s: float | None = None
    unschedulable_since_s: float | None = None
    unplaced_s: float = 0.0  # for so long no node had room for it
    terminating_since_s: float | None = None
    admitted_real_s: float | None = None  # when a gateway last said that it admits the pod
    restored: bool = False  # it was there, and ready, before we looked
    away: bool = False  # its node does not report
    measured: bool = False  # its cold start has been taken down
    drain_told: bool = False
    phase_stamp_ms: int = 0  # start, or end, of the phase it was last seen in; and when that was
    phase_s: float = 0.0
    expected_node_s: float = 0.0  # how long another node was to take while none had room for it
    predicted: coldstart.ColdStart | None = None


def state_of(pod: ports.Object, admitted: bool) -> ReplicaState:
    """Where the pod is in its life; ``admitted``: a gateway's probe found it ready."""
    status = pod.get("status", {})
    if pod["metadata"].get("deletionTimestamp"):
        return ReplicaState.TERMINATING
    if is_broken(pod):
        return ReplicaState.STUCK
    if pods.is_ready(pod):
        return ReplicaState.READY
    if admitted:
        return ReplicaState.ADMITTED
    if pod["spec"].get("nodeName"):
        return ReplicaState.STARTING
    scheduled = conditions.find(pod, "PodScheduled")
    if scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable":
        return ReplicaState.UNSCHEDULABLE
    return ReplicaState.STUCK if status.get("phase") == "Failed" else ReplicaState.PENDING


def is_admitted(known: Sighting | None, told: bool, now: Now) -> bool:
    """Whether a gateway's probe admits the pod, or did until a moment ago."""
    last_real_s = None if known is None else known.admitted_real_s
    lingers = last_real_s is not None and now.real_s - last_real_s < ADMITTED_LINGERS_REAL_S
    return told or lingers


def lingers_until_real_s(seen: Iterable[Sighting], now: Now) -> float | None:
    """When the first pod that no gateway admits any more ceases to be believed admitted."""
    last = (each.admitted_real_s for each in seen)
    ends = (at + ADMITTED_LINGERS_REAL_S for at in last if at is not None and at < now.real_s)
    return min((end for end in ends if end > now.real_s), default=None)


def is_broken(pod: ports.Object) -> bool:
    """Whether a container crash-loops or cannot be started at all."""
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    waiting = (s.get("state", {}).get("waiting", {}).get("reason", "") for s in statuses)
    return any(reason in _BROKEN for reason in waiting)


def trouble(pod: ports.Object) -> str:
    """Why it does not run, in the words of kubelet or scheduler; empty if they say nothing."""
    status = pod.get("status", {})
    for container in status.get("containerStatuses") or ():
        waiting = container.get("state", {}).get("waiting") or {}
        if waiting.get("reason") in _BROKEN:
            return _why(waiting, (container.get("lastState") or {}).get("terminated"))
    scheduled = conditions.find(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        return str(scheduled.get("message") or "").partition(". ")[0]
    return str(status.get("message") or status.get("reason") or "")


def _why(waiting: Mapping[str, Any], ended: Mapping[str, Any] | None) -> str:
    reason = str(waiting["reason"])
    if ended is None:
        return ", ".join(filter(None, (reason, str(waiting.get("message") or ""))))
    words = str(ended.get("message") or "").strip().rpartition("\n")[2][:WORDS_LIMIT]
    code = f"exit code {ended.get('exitCode')}"
    return f"{reason}, {code}: {words}" if words else f"{reason}, {code}"


def phase_stamps(pod: ports.Object) -> wire.PhaseStamps | None:
    """The emulator's stamps of the pod's cold start; None where there are none."""
    text = pods.annotations(pod).get(names.PHASES)
    if not text:
        return None
    try:
        return wire.PhaseStamps.parse(json.loads(text))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def look(
    known: Sighting | None,
    pod: ports.Object,
    state: ReplicaState,
    now: Now,
    looked_s: float = -math.inf,
    *,
    away: bool = False,
) -> Sighting:
    """Take in how the pod is now. ``looked_s``: when this model's pods were last looked at.

    ``away``: its node does not report.
    """
    first = known is None
    seen = known or Sighting(_since(pod["metadata"].get("creationTimestamp"), now, looked_s))
    if seen.started_s is None and pod["spec"].get("nodeName"):
        seen.started_s = _bound_s(pod, now, looked_s)
    if state is ReplicaState.UNSCHEDULABLE:
        if seen.unschedulable_since_s is None:
            stamp = conditions.find(pod, "PodScheduled").get("lastTransitionTime")
            seen.unschedulable_since_s = _since(stamp, now, looked_s)
    elif seen.unschedulable_since_s is not None:
        seen.unplaced_s += max(0.0, now.emulated_s - seen.unschedulable_since_s)
        seen.unschedulable_since_s = None
    if state is ReplicaState.READY or state is ReplicaState.ADMITTED:
        if seen.ready_since_s is None:
            stamp = conditions.find(pod, "Ready").get("lastTransitionTime")
            seen.ready_since_s = (
                _since(stamp, now, looked_s) if state is ReplicaState.READY else now.emulated_s
            )
            seen.restored = first
    elif state is not ReplicaState.TERMINATING and seen.ready_since_s is not None:
        # It served and does no more: its container starts again.
        seen.ready_since_s, seen.started_s = None, now.emulated_s
    if seen.away and not away and state is ReplicaState.STARTING:
        # What became of it while its node was away is told from now on.
        seen.started_s = now.emulated_s
    seen.away = away
    if state is ReplicaState.STARTING:
        _note_phase(seen, pod, now, looked_s)
    if state is ReplicaState.TERMINATING and seen.terminating_since_s is None:
        seen.terminating_since_s = now.emulated_s
    return seen


def _note_phase(seen: Sighting, pod: ports.Object, now: Now, looked_s: float) -> None:
    """When the phase that it is in began, or ended: noted once, whatever the clocks do later."""
    stamps = phase_stamps(pod)
    if stamps is None or not stamps.stamps:
        return
    stamp_ms = stamps.stamps[-1].end_ms or stamps.stamps[-1].start_ms
    if stamp_ms != seen.phase_stamp_ms:
        seen.phase_stamp_ms, seen.phase_s = stamp_ms, max(now.at(stamp_ms / 1000), looked_s)


def expected_ready_s(pod: ports.Object, seen: Sighting, now: Now) -> float | None:
    """When a starting pod should be ready, from the phase ``look`` saw; None without stamps."""
    stamps, predicted = phase_stamps(pod), seen.predicted
    if stamps is None or predicted is None or not stamps.stamps:
        return None
    current = stamps.stamps[-1]
    later = _later_s(predicted, current.phase)
    if current.end_ms:
        return seen.phase_s + later
    told_ms = current.expected_ms or current.planned_ms
    planned_s = told_ms / 1000 or _planned_s(predicted, current.phase)
    return max(now.emulated_s, seen.phase_s + planned_s) + later


def _planned_s(predicted: coldstart.ColdStart, phase: wire.Phase) -> float:
    return {
        wire.Phase.SCHEDULING: predicted.scheduling_s,
        wire.Phase.PROVISIONING: predicted.provisioning_s,
        wire.Phase.IMAGE_PULL: predicted.image_pull_s,
        wire.Phase.WEIGHT_LOAD: predicted.weight_load_s,
        wire.Phase.WARM_UP: predicted.warm_up_s,
        wire.Phase.PROBE: predicted.probe_s,
        wire.Phase.STARTED: 0.0,
    }[phase]


def _later_s(predicted: coldstart.ColdStart, phase: wire.Phase) -> float:
    order = list(wire.Phase)
    return sum(_planned_s(predicted, later) for later in order[order.index(phase) + 1 :])


def _bound_s(pod: ports.Object, now: Now, looked_s: float) -> float:
    stamps = phase_stamps(pod)
    if stamps is not None and stamps.stamps:
        return max(now.at(stamps.stamps[0].start_ms / 1000), looked_s)
    stamp = conditions.find(pod, "PodScheduled").get("lastTransitionTime")
    return _since(stamp, now, looked_s)


def _since(stamp: str | None, now: Now, looked_s: float) -> float:
    wall_s = timestamps.parse_if_any(stamp)
    if wall_s is None or now.wall_s - wall_s < TRUSTED_AGE_REAL_S:
        return now.emulated_s
    return max(now.at(wall_s), looked_s)
