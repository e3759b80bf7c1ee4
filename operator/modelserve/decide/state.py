"""What the autoscaler remembers of one model between decisions, and how it survives a restart.

In the status everything is an age in seconds, never an instant: clocks that restart or jump do not
matter. Time while the operator was away does not count, which only delays a shrink.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from modelserve.api import status
from modelserve.decide import (
    claims,
    drain,
    gaps,
    observation,
    outlook,
    progress,
    repair,
    traffic,
    windows,
)


class ScalerState(NamedTuple):
    """Memory of one model's autoscaler. Times are emulated seconds on the clock of ``now_s``.

    A tuple, not a dataclass: a copy with some fields changed is made at every decision.
    """

    restored_at_s: float | None = None  # the operator (re)started: no shrink for one down window
    known: traffic.Traffic = traffic.Traffic()
    watch: progress.Watch = progress.Watch()
    backlog_s: float | None = None  # the last instant with a backlog
    piled: bool = False  # what is open grew to a backlog while replicas were starting
    silent_since_s: float | None = None  # no figures at all since then
    recommendations: windows.Recommendations = ()  # of the down window: what the load took
    growth: windows.Recommendations = ()  # of the up window: all that was asked for
    steps: windows.Steps = ()
    asked_count: int | None = None  # the count the last decision asked for, and since when
    asked_at_s: float = 0.0
    live_count: int | None = None  # the count the last decision saw
    deleted: repair.Deletions = repair.Deletions()
    foreign: claims.Claims = claims.Claims()

    def after(
        self,
        known: traffic.Traffic,
        watch: progress.Watch,
        backlog_s: float | None,
        piled: bool,
        recommendations: windows.Recommendations,
        growth: windows.Recommendations,
    ) -> "ScalerState":
        """The state after a look with figures. Spelled out: ``_replace`` takes thrice as long."""
        return ScalerState(
            self.restored_at_s,
            known,
            watch,
            backlog_s,
            piled,
            None,
            recommendations,
            growth,
            self.steps,
            self.asked_count,
            self.asked_at_s,
            self.live_count,
            self.deleted,
            self.foreign,
        )


def counted(
    past: ScalerState,
    seen: observation.Observation,
    parameters: observation.Parameters,
    now_s: float,
) -> ScalerState:
    """Note a change of the live count as a step, at the time it was asked for if we asked."""
    before = past.live_count
    if before is None or before == seen.live_count:
        return past if before is not None else past._replace(live_count=seen.live_count)
    at_s = past.asked_at_s if past.asked_count == seen.live_count else now_s
    keep_s = max((r.period_s for r in (*parameters.up.rates, *parameters.down.rates)), default=0.0)
    steps = tuple(s for s in past.steps if s.at_s > now_s - keep_s)
    step = windows.Step(at_s, seen.live_count - before)
    return past._replace(live_count=seen.live_count, steps=(*steps, step))


def to_status(
    state: ScalerState, now_s: float, *, arrival_rate_per_s: float, cold_start_s: float
) -> status.AutoscalerStatus:
    """What of it belongs into ``status.autoscaler``; the caller adds its own by model_copy."""
    known = state.known
    active_s, bursts, drained = known.last_active_s, known.bursts, known.drained
    return status.AutoscalerStatus(
        arrival_rate=round(arrival_rate_per_s, 4),
        mean_arrival_rate=round(bursts.mean_per_s, 4),
        burst_square=round(bursts.square, 4),
        burst_persisted=round(bursts.product, 4),
        drained_requests=round(drained.done, 2),
        drained_seconds=round(drained.busy_s, 2),
        service_seconds=round(known.service_s or 0.0, 4),
        service_samples=known.service_samples,
        cold_start_seconds=round(cold_start_s, 3),
        idle_gaps=list(known.idle.counts),
        down_window=_ages(state.recommendations, now_s),
        up_window=_ages(state.growth, now_s),
        scale_steps=[[round(now_s - s.at_s, 1), float(s.change)] for s in state.steps[-512:]],
        last_request_seconds_ago=None if active_s is None else round(now_s - active_s, 1),
    )


def from_status(saved: status.AutoscalerStatus | None, now_s: float) -> ScalerState:
    """The state after a restart at ``now_s``; of a model never seen before if nothing was saved."""
    # Nobody knows whether a backlog found at the start piled up while replicas were starting.
    if saved is None:
        return ScalerState(restored_at_s=now_s, piled=True)
    ago_s = saved.last_request_seconds_ago
    known = traffic.Traffic(
        service_s=saved.service_seconds or None,
        service_samples=saved.service_samples,
        last_active_s=None if ago_s is None else now_s - ago_s,
        bursts=outlook.restored(saved.mean_arrival_rate, saved.burst_square, saved.burst_persisted),
        drained=drain.restored(saved.drained_requests, saved.drained_seconds),
        idle=gaps.restored(saved.idle_gaps),
    )
    return ScalerState(
        restored_at_s=now_s,
        known=known,
        piled=True,
        recommendations=_instants(saved.down_window, now_s),
        growth=_instants(saved.up_window, now_s),
        steps=tuple(windows.Step(now_s - ago, int(change)) for ago, change in saved.scale_steps),
    )


def _ages(past: windows.Recommendations, now_s: float) -> list[list[float]]:
    return [[round(now_s - each.at_s, 1), float(each.count)] for each in past[-512:]]


def _instants(saved: Iterable[Sequence[float]], now_s: float) -> windows.Recommendations:
    return tuple(windows.Recommended(now_s - ago_s, int(count)) for ago_s, count in saved)
