"""Who goes first: stuck, then pending, loading, idle, least loaded, youngest.

A ReplicaSet keeps to its own order (unassigned, pending, unready, then deletion cost), so the cost
is written only to tell ready ones apart, and seen back before the count is. Gateways send nothing
to pods with a negative cost.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from modelserve.decide import observation

State = observation.ReplicaState
READY, TERMINATING = State.READY, State.TERMINATING
Replica = observation.Replica


NO_COSTS: Mapping[str, int] = MappingProxyType({})


class Plan(NamedTuple):
    """``uids`` go, in this order; ``costs`` are the pod deletion costs to write first."""

    uids: tuple[str, ...] = ()
    costs: Mapping[str, int] = NO_COSTS


NOBODY = Plan()


def order(
    replicas: Sequence[Replica], stuck: Collection[str], loads: Mapping[str, float]
) -> list[Replica]:
    """All replicas that are not terminating, first victim first.

    A replica already marked to go stays ahead of its like: it only drains from then on.
    """
    ranks = []
    for place, replica in enumerate(replicas):
        state, uid, cost = replica.state, replica.uid, replica.deletion_cost
        if state is TERMINATING:
            continue
        kind = 3 if state is READY and uid not in stuck else _kind(replica, uid in stuck)
        stays = cost is None or cost >= 0
        ranks.append((kind, stays, loads.get(uid, 0.0), -replica.created_s, uid, place))
    ranks.sort()
    return [replicas[rank[5]] for rank in ranks]


def _kind(replica: Replica, stuck: bool) -> int:
    state = replica.state
    if stuck or state is State.STUCK:
        return 0
    if state is State.READY or state is State.ADMITTED:
        return 3
    return 2 if state is State.STARTING else 1


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
    enough: int,
) -> int:
    """How many replicas are expected to be idle within ``drain_s``; counts up to ``enough``."""
    count = 0
    for replica in replicas:
        if replica.state is TERMINATING:
            continue
        load = loads.get(replica.uid, 0.0)
        count += not load or drained_in_s(load, slots, service_s) <= drain_s
        if count >= enough:
            break
    return count


def plan(
    replicas: Sequence[Replica],
    stuck: Collection[str],
    loads: Mapping[str, float],
    shrink_by: int,
) -> Plan:
    """Choose ``shrink_by`` victims. Marks that no longer hold are taken back with a cost of 0."""
    if shrink_by <= 0:
        for replica in replicas:
            if replica.deletion_cost is not None and _marked(replica):
                break
        else:
            return NOBODY
    going: list[str] = []
    costs: dict[str, int] = {}
    for place, replica in enumerate(order(replicas, stuck, loads), -max(0, shrink_by)):
        if place < 0:
            going.append(replica.uid)
            if replica.serves and replica.deletion_cost != place:
                costs[replica.uid] = place
        elif _marked(replica):
            costs[replica.uid] = 0
    return Plan(tuple(going), costs)
