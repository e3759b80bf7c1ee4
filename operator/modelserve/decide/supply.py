"""Supply: which replicas serve, which will and when, and which are stuck and count for nothing.

Stuck are crash-looping pods, pods past the progress deadline, pods later than max(30 s, 2 ×
predicted), and pods no node has taken for 30 s (3 × the provisioning time where a pool can grow).
One whose node is out of reach is late, but never past the deadline: it may serve as it did the
moment its node is back, and if it does not come back Kubernetes evicts it.
"""

import math
from typing import NamedTuple

from modelserve.decide import observation

State = observation.ReplicaState
READY, TERMINATING = State.READY, State.TERMINATING

LATE_AT_LEAST_S = 30.0
LATE_FACTOR = 2.0
UNSCHEDULABLE_GRACE_S = 30.0
PROVISIONING_FACTOR = 3.0
# An expected instant that has passed is moved this far ahead: the replica is not there yet.
OVERDUE_GUESS_S = 1.0
KINDS = ("late", "broken", "unplaced")
NONE_STUCK: tuple[tuple[str, ...], ...] = ((), (), ())


class Supply(NamedTuple):
    """The replicas of one model, sorted by what they are worth. Instants in emulated seconds."""

    ready: int
    admitted: int  # of these, ready to a gateway only
    starting_s: tuple[float, ...]  # expected ready instants, soonest first; ordered ones included
    late: tuple[str, ...]  # UIDs: later than predicted twice over, still given their time
    broken: tuple[str, ...]  # UIDs: crash-looping or past the deadline, to be deleted
    unplaced: tuple[str, ...]  # UIDs: no node takes them
    stuck: tuple[str, ...]  # all UIDs that are no supply
    bound: int  # pods that have their GPUs
    pods: int  # not terminating
    terminating: int
    next_change_s: float | None  # when the next starting replica may turn into a stuck one

    @property
    def committed(self) -> int:
        """Ready and starting."""
        return self.ready + len(self.starting_s)

    @property
    def next_ready_s(self) -> float | None:
        """When the next starting replica is expected to be ready."""
        return self.starting_s[0] if self.starting_s else None


def classify(
    seen: observation.Observation, parameters: observation.Parameters, now_s: float
) -> Supply:
    """Sort the replicas. Replicas the Deployment asks for but shows no pod of yet are starting."""
    ready = admitted = terminating = bound = pods = 0
    starting: list[float] = []
    stuck: dict[str, list[str]] = {}
    changes_s: list[float] = []
    for replica in seen.replicas:
        state = replica.state
        if state is READY:
            ready += 1
        elif state is TERMINATING:
            terminating += 1
        elif state is State.ADMITTED:
            ready += 1
            admitted += 1
        else:
            pods += 1
            bound += state is not State.PENDING and state is not State.UNSCHEDULABLE
            kind, until_s = _judge(replica, parameters, now_s)
            if until_s is not None:
                changes_s.append(until_s)
            if kind:
                stuck.setdefault(kind, []).append(replica.uid)
            else:
                starting.append(expected_s(replica, parameters, now_s))
    pods += ready
    if seen.live_count > pods:
        starting.extend([now_s + parameters.cold_start_s] * (seen.live_count - pods))
    starting.sort()
    late, broken, unplaced = (tuple(stuck.get(kind, ())) for kind in KINDS) if stuck else NONE_STUCK
    return Supply(
        ready,
        admitted,
        tuple(starting),
        late,
        broken,
        unplaced,
        broken + late + unplaced,
        bound + ready,
        pods,
        terminating,
        min(changes_s) if changes_s else None,
    )


def _judge(
    replica: observation.Replica, parameters: observation.Parameters, now_s: float
) -> tuple[str, float | None]:
    """Why a replica is stuck ("" if it is not), and when that may change by time alone."""
    if replica.state is State.STUCK:
        return "broken", None
    if replica.state is State.PENDING:
        return "", None
    if replica.state is State.UNSCHEDULABLE:
        since_s = replica.unschedulable_since_s
        since_s = replica.created_s if since_s is None else since_s
        until_s = since_s + _scheduling_grace_s(parameters)
        return ("", until_s) if now_s < until_s else ("unplaced", None)
    since_s = replica.created_s if replica.started_s is None else replica.started_s
    deadline_s = math.inf if replica.away else since_s + parameters.progress_deadline_s
    if now_s >= deadline_s:
        return "broken", None
    predicted_s = replica.predicted_s or parameters.cold_start_s
    late_s = since_s + max(LATE_AT_LEAST_S, LATE_FACTOR * predicted_s)
    if now_s >= late_s:
        return "late", None if replica.away else deadline_s
    return "", min(late_s, deadline_s)


def _scheduling_grace_s(parameters: observation.Parameters) -> float:
    if not parameters.gpus.can_grow:
        return UNSCHEDULABLE_GRACE_S
    return max(UNSCHEDULABLE_GRACE_S, PROVISIONING_FACTOR * parameters.gpus.provision_s)


def expected_s(
    replica: observation.Replica, parameters: observation.Parameters, now_s: float
) -> float:
    """When a starting replica is expected to be ready; never in the past."""
    cold_start_s = replica.predicted_s or parameters.cold_start_s
    if replica.expected_ready_s is not None:
        guess_s = replica.expected_ready_s
    elif replica.started_s is not None:
        guess_s = replica.started_s + cold_start_s
    elif replica.state is State.UNSCHEDULABLE:
        since_s = replica.unschedulable_since_s
        since_s = replica.created_s if since_s is None else since_s
        # A cold start for which a node has to come contains that.
        provision_s = parameters.gpus.provision_s
        guess_s = max(now_s, since_s + provision_s) + max(0.0, cold_start_s - provision_s)
    else:
        guess_s = replica.created_s + cold_start_s
    return max(guess_s, now_s + OVERDUE_GUESS_S)
