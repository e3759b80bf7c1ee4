"""What the autoscaler remembers of one model between decisions, and how it survives a restart.

In the status everything is an age in seconds, never an instant: clocks that restart or jump do not
matter. Time while the operator was away does not count, which only delays a shrink.
"""

from typing import NamedTuple

from modelserve.api import status
from modelserve.decide import drain, gaps, outlook, progress, windows


class ScalerState(NamedTuple):
    """Memory of one model's autoscaler. Times are emulated seconds on the clock of ``now_s``.

    A tuple, not a dataclass: a copy with some fields changed is made at every decision.
    """

    restored_at_s: float | None = None  # the operator (re)started: no shrink for one down window
    service_s: float | None = None  # Ŝ; None before the first completion
    service_samples: int = 0
    # Seconds that requests on replicas were there, as of when, and how many they were then.
    under_way: tuple[float, float, float] = (0.0, 0.0, 0.0)
    arrivals: tuple[tuple[float, float, int], ...] = ()  # (from, to, arrivals) slices of time
    traffic_since_s: float | None = None
    bursts: outlook.Outlook = outlook.Outlook()
    drained: drain.Drain = drain.Drain()
    idle: gaps.Gaps = gaps.Gaps()
    watch: progress.Watch = progress.Watch()
    last_active_s: float | None = None  # the last instant with a request anywhere
    silent_since_s: float | None = None  # no figures at all since then
    recommendations: windows.Recommendations = ()
    steps: windows.Steps = ()
    asked_count: int | None = None  # the count the last decision asked for, and since when
    asked_at_s: float = 0.0
    live_count: int | None = None  # the count the last decision saw
    deleting: str = ""  # UID of the stuck pod that is to go
    deleted_at_s: float | None = None  # when that was first asked for
    deleted_times: int = 0  # in a row, without a time when nothing was broken
    foreign_since_s: float | None = None  # a foreign writer's count is live since then
    forced_at_s: float | None = None  # when the field was last taken back
    forced_times: int = 0  # in a row


def to_status(
    state: ScalerState, now_s: float, *, arrival_rate_per_s: float, cold_start_s: float
) -> status.AutoscalerStatus:
    """What of it belongs into ``status.autoscaler``; the caller adds its own by model_copy."""
    active_s, bursts, drained = state.last_active_s, state.bursts, state.drained
    return status.AutoscalerStatus(
        arrival_rate=round(arrival_rate_per_s, 4),
        mean_arrival_rate=round(bursts.mean_per_s, 4),
        burst_square=round(bursts.square, 4),
        burst_persisted=round(bursts.product, 4),
        drained_requests=round(drained.done, 2),
        drained_seconds=round(drained.busy_s, 2),
        service_seconds=round(state.service_s or 0.0, 4),
        service_samples=state.service_samples,
        cold_start_seconds=round(cold_start_s, 3),
        idle_gaps=list(state.idle.counts),
        down_window=[[round(now_s - r.at_s, 1), float(r.count)] for r in state.recommendations],
        scale_steps=[[round(now_s - s.at_s, 1), float(s.change)] for s in state.steps[-512:]],
        last_request_seconds_ago=None if active_s is None else round(now_s - active_s, 1),
    )


def from_status(saved: status.AutoscalerStatus | None, now_s: float) -> ScalerState:
    """The state after a restart at ``now_s``; of a model never seen before if nothing was saved."""
    if saved is None:
        return ScalerState(restored_at_s=now_s)
    ago_s = saved.last_request_seconds_ago
    return ScalerState(
        restored_at_s=now_s,
        service_s=saved.service_seconds or None,
        service_samples=saved.service_samples,
        bursts=outlook.restored(saved.mean_arrival_rate, saved.burst_square, saved.burst_persisted),
        drained=drain.restored(saved.drained_requests, saved.drained_seconds),
        idle=gaps.restored(saved.idle_gaps),
        last_active_s=None if ago_s is None else now_s - ago_s,
        recommendations=tuple(
            windows.Recommended(now_s - ago, int(count)) for ago, count in saved.down_window
        ),
        steps=tuple(windows.Step(now_s - ago, int(change)) for ago, change in saved.scale_steps),
    )
