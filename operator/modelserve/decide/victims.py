"""Who goes first: stuck, then pending, loading, idle, least loaded, youngest.

A ReplicaSet keeps to its own order (unassigned, pending, unready, then deletion cost), so the cost
is written only to tell ready ones apart, and seen back before the count is. Gateways send nothing
to pods with a negative cost.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from modelserve.decide import observation

State = observation.ReplicaState
Replica = observation.Replica


@dataclass(frozen=True, slots=True)
class Plan:
    """``uids`` go, in this order; ``costs`` are the pod deletion costs to write first."""

    uids: tuple[str, ...] = ()
    costs: Mapping[str, int] = field(default_factory=dict)


def order(
    replicas: Sequence[Replica], stuck: Collection[str], loads: Mapping[str, float]
) -> list[Replica]:
    """All replicas that are not terminating, first victim first.

    A replica already marked to go stays ahead of its like: it only drains from then on.
    """
    staying = (r for r in replicas if r.state is not State.TERMINATING)
    return sorted(staying, key=lambda r: _rank(r, r.uid in stuck, loads.get(r.uid, 0.0)))


def _rank(replica: Replica, stuck: bool, load: float) -> tuple[int, bool, float, float, str]:
    if stuck or replica.state is State.STUCK:
        kind = 0
    elif replica.state is State.PENDING or replica.state is State.UNSCHEDULABLE:
        kind = 1
    elif replica.state is State.STARTING:
        kind = 2
    else:
        kind = 3
    return kind, not _marked(replica), load, -replica.created_s, replica.uid


def _marked(replica: Replica) -> bool:
    return replica.deletion_cost is not None and replica.deletion_cost < 0


def drained_in_s(load: float, slots: int, service_s: float) -> float:
    """When a replica that gets nothing new is expected to be idle, in seconds from now."""
    return service_s * max(1.0, load / slots) if load > 0 else 0.0


def removable(
    replicas: Sequence[Replica],
    loads: Mapping[str, float],
    *,
    slots: int,
    service_s: float,
    drain_s: float,
) -> int:
    """How many replicas are expected to be idle within ``drain_s``."""
    return sum(
        drained_in_s(loads.get(r.uid, 0.0), slots, service_s) <= drain_s
        for r in replicas
        if r.state is not State.TERMINATING
    )


def plan(
    replicas: Sequence[Replica],
    stuck: Collection[str],
    loads: Mapping[str, float],
    shrink_by: int,
) -> Plan:
    """Choose ``shrink_by`` victims. Marks that no longer hold are taken back with a cost of 0."""
    if shrink_by <= 0 and not any(_marked(r) for r in replicas):
        return Plan()
    ordered = order(replicas, stuck, loads)
    going = ordered[: max(0, shrink_by)]
    uids = tuple(r.uid for r in going)
    costs = {r.uid: i - len(going) for i, r in enumerate(going) if r.serves}
    back = {r.uid: 0 for r in ordered if _marked(r) and r.uid not in uids}
    changed = {r.uid: r.deletion_cost for r in ordered}
    return Plan(uids, {u: c for u, c in (costs | back).items() if changed[u] != c})
