"""The progress guard: a backlog that does not fall as it should is not believed to.

It watches while there is a backlog, nothing starts and no replica came or went. When after twice
the drain goal (or twice Ŝ) more is left than the drain rate had it, by over a batch of each
replica, what the replicas did finish since then is their rate, and the policy is asked again: at
least one more, at most one rate step and QueueDepth's count. The drain rate is that of then, or
today's if that is less: with what has shown itself the policy has reckoned. So no engine that
hangs and no estimate that stays wrong starves a queue.
"""

from typing import NamedTuple

from modelserve.decide import committed, situation, verdict, windows, wording
from modelserve.decide.record import Reason

PATIENCE = 2.0
LEAST_PER_S = 1e-6  # of a replica that finishes nothing


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
    """What the policy says to the rate that was seen, if the backlog is above its forecast."""
    judged_s = due_s(watch, view)
    if watch.since_s is None or judged_s is None or view.now_s < judged_s:
        return now
    parameters, took_s = view.parameters, view.now_s - watch.since_s
    # What ended since the gateways' last report is not known yet.
    busy_s = watch.ready * max(0.0, took_s - parameters.snapshot_s)
    rate_per_s = min(watch.replica_rate_per_s, view.replica_rate_per_s)
    came = watch.backlog + arrived - watch.arrived
    forecast = came - rate_per_s * busy_s
    # Requests that began together end together: any moment each replica may end a batch.
    if view.backlog <= forecast + watch.ready * parameters.slots:
        return now
    seen_per_s = max(LEAST_PER_S, (came - view.backlog) / busy_s)
    count = committed.recommend(view._replace(replica_rate_per_s=seen_per_s)).replicas
    by_depth = situation.ceil(view.demand.total / parameters.target)
    step = windows.limit_up(view.current, (), parameters.up, view.now_s)
    count = min(max(count, view.current + 1), by_depth, step)
    if count <= now.replicas:
        return now

    def why() -> str:
        waits, left = wording.number(view.backlog), wording.number(max(0.0, forecast))
        after, each = wording.seconds(took_s), wording.rate(seen_per_s)
        return f"after {after} {waits} still wait where {left} should: a replica finishes {each}"

    return now._replace(replicas=count, reason=Reason.PROGRESS_GUARD, why=(why,))
