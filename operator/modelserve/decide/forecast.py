"""The backlog as a fluid: what is left when a replica ordered now could help, and how long to wait.

The backlog is what exceeds the slots of ready replicas, wherever it queues. It changes by
``λ − n(t) · slots/Ŝ`` per second, where n(t) counts ready replicas and each starting one from its
own expected instant; it is never below zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fluid:
    """Arrivals against the work replicas do. Rates per emulated second, ``starting_s`` sorted."""

    arrival_rate_per_s: float
    replica_rate_per_s: float  # slots / Ŝ: requests one busy replica finishes
    slots: int
    ready: int
    starting_s: Sequence[float]  # seconds from now


def backlog_after(fluid: Fluid, backlog: float, horizon_s: float) -> float:
    """The backlog ``horizon_s`` from now, in requests."""
    at_s, replicas, left = 0.0, fluid.ready, backlog
    for ready_s in fluid.starting_s:
        if ready_s >= horizon_s:
            break
        left = _flow(fluid, left, replicas, ready_s - at_s)
        at_s, replicas = max(at_s, ready_s), replicas + 1
    return _flow(fluid, left, replicas, horizon_s - at_s)


def _flow(fluid: Fluid, backlog: float, replicas: int, seconds: float) -> float:
    rate_per_s = fluid.arrival_rate_per_s - replicas * fluid.replica_rate_per_s
    return max(0.0, backlog + rate_per_s * max(0.0, seconds))


def wait_s(fluid: Fluid, ahead: float) -> float | None:
    """Seconds until a replica takes up a request that has ``ahead`` others before it.

    ``ahead`` is negative while ready replicas have free slots. A replica takes up its slots' worth
    the instant it is ready. None if nothing is ready and nothing starts.
    """
    to_start = ahead + 1
    if to_start <= 0 and fluid.ready:
        return 0.0
    at_s, replicas = 0.0, fluid.ready
    for ready_s in fluid.starting_s:
        done = replicas * fluid.replica_rate_per_s * (ready_s - at_s)
        if done >= to_start:
            break
        to_start -= done + fluid.slots
        at_s, replicas = ready_s, replicas + 1
        if to_start <= 0:
            return at_s
    if not replicas:
        return None
    return at_s + max(0.0, to_start) / (replicas * fluid.replica_rate_per_s)
