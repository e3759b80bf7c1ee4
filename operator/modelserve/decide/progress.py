"""The progress guard: a backlog that does not fall as it should is not believed to.

It watches while there is a backlog, nothing starts and no replica came or went. When after twice
the drain goal (or twice Ŝ) more is left than the drain rate of then had it, the count grows by one
rate step, up to QueueDepth's: no service time taken for too short, no engine that hangs starves it.
"""

from typing import NamedTuple

from modelserve.decide import situation, verdict, windows, wording
from modelserve.decide.record import Reason

PATIENCE = 2.0


class Watch(NamedTuple):
    """Since when it watches, what there was then, and how fast it should fall."""

    since_s: float | None = None
    ready: int = 0
    backlog: float = 0.0
    arrived: int = 0
    replica_rate_per_s: float = 0.0


IDLE = Watch()


def advance(past: Watch, view: situation.Situation, arrived: int) -> Watch:
    """Begin, go on, or stop to watch a backlog. ``arrived`` counts all arrivals ever."""
    ready, backlog = view.supply.ready, view.backlog
    if not ready or view.supply.starting_s:
        return IDLE
    if past.since_s is not None and past.ready == ready:
        return past
    return Watch(view.now_s, ready, backlog, arrived, view.replica_rate_per_s)


def due_s(watch: Watch, view: situation.Situation) -> float | None:
    """When it judges."""
    if watch.since_s is None:
        return None
    parameters = view.parameters
    least_s = max(parameters.goal_s, view.service_s, PATIENCE * parameters.snapshot_s)
    return watch.since_s + PATIENCE * least_s


def guard(
    now: verdict.Verdict, view: situation.Situation, watch: Watch, arrived: int
) -> verdict.Verdict:
    """One rate step more if the backlog is above its forecast."""
    judged_s = due_s(watch, view)
    if watch.since_s is None or judged_s is None or view.now_s < judged_s:
        return now
    parameters, took_s = view.parameters, view.now_s - watch.since_s
    # What ended since the gateways' last report is not known yet.
    told_s = max(0.0, took_s - parameters.snapshot_s)
    done = watch.ready * watch.replica_rate_per_s * told_s
    forecast = max(0.0, watch.backlog + arrived - watch.arrived - done)
    if view.backlog <= forecast + parameters.slots:
        return now
    step = windows.limit_up(view.current, (), parameters.up, view.now_s)
    count = min(situation.ceil(view.demand.total / parameters.target), step)
    if count <= now.replicas:
        return now

    def why() -> str:
        waits, left = wording.number(view.backlog), wording.number(forecast)
        after = wording.seconds(took_s)
        return (
            f"after {after} {waits} still wait where {left} should: it does not go on as expected"
        )

    return now._replace(replicas=count, reason=Reason.PROGRESS_GUARD, why=(why,))
