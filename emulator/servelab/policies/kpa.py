"""How Knative's autoscaler turns window averages into a count: stable and panic mode.

Source: knative.dev/serving v0.51.0, pkg/autoscaler/scaling (autoscaler.go, multiscaler.go); the
defaults from config/core/configmaps/autoscaler.yaml. What becomes of the count: ``knative``.
"""

import math
from dataclasses import dataclass

from servelab.policies import buckets

TICK_S = 2.0  # multiscaler.go, tickInterval
BUCKET_S = 1.0  # config.BucketSize
INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Knobs:
    """What one revision's decider is told. Counts are pods, times seconds.

    ``target`` is what one pod is meant to have, after utilization; ``total`` what it can have.
    """

    target: float = 70.0  # container-concurrency-target-default 100 at 70 %
    total: float = 100.0
    stable_window_s: float = 60.0  # stable-window
    panic_window_s: float = 6.0  # panic-window-percentage 10 of it
    panic_threshold: float = 2.0  # panic-threshold-percentage 200
    max_scale_up_rate: float = 1000.0  # max-scale-up-rate
    max_scale_down_rate: float = 2.0  # max-scale-down-rate
    scale_down_delay_s: float = 0.0  # scale-down-delay
    activation_scale: int = 0  # annotation activation-scale; below 2: none
    target_burst_capacity: float = 211.0  # target-burst-capacity; -1: unlimited
    reachable: bool = True  # some route leads to the revision


@dataclass(frozen=True, slots=True)
class State:
    """What the decider remembers."""

    stable: buckets.Window
    panic: buckets.Window
    delayed: buckets.Maximum | None
    panic_since_s: float | None = None  # over the threshold last; None: not in panic
    panic_pods: int = 0  # the most asked for in this panic


@dataclass(frozen=True, slots=True)
class Scale:
    """What one tick found."""

    desired: int
    stable: float  # window averages
    panic: float
    unlimited: int  # the stable window's count before rates, panic and delay
    panicking: bool
    delayed: bool  # kept up by the scale-down delay
    limited: bool  # held by a rate
    excess: int  # burst capacity to spare; below 0 the activator stays in the path


def start(knobs: Knobs, ready: int, now_s: float) -> State:
    """A decider made at ``now_s``; it starts in panic over more than one pod, so as to keep them.

    Without that, the empty history after a restart would shrink what serves.
    """
    delay_s = knobs.scale_down_delay_s
    return State(
        buckets.window(knobs.stable_window_s, BUCKET_S),
        buckets.window(knobs.panic_window_s, BUCKET_S),
        buckets.maximum(delay_s, TICK_S) if delay_s > 0 else None,
        now_s if ready > 1 else None,
        ready,
    )


def record(past: State, value: float, now_s: float) -> State:
    """Take in one second's concurrency (or requests) of the whole revision."""
    stable = buckets.record(past.stable, value, now_s)
    panic = buckets.record(past.panic, value, now_s)
    return State(stable, panic, past.delayed, past.panic_since_s, past.panic_pods)


def scale(knobs: Knobs, past: State, ready: int, now_s: float) -> tuple[Scale | None, State]:
    """One tick over ``ready`` pods. No data for a whole window: None, and nothing is applied."""
    if buckets.empty(past.stable, now_s):
        return None, past
    stable, panic = (buckets.average(each, now_s) for each in (past.stable, past.panic))
    pods = max(1.0, float(ready))
    wanted_stable, wanted_panic = (_pods(value / knobs.target) for value in (stable, panic))
    most = math.ceil(knobs.max_scale_up_rate * pods)
    least = math.floor(pods / knobs.max_scale_down_rate) if knobs.reachable else 0
    allowed_stable = min(max(wanted_stable, least), most)
    allowed_panic = min(max(wanted_panic, least), most)
    if knobs.activation_scale > 1:
        if wanted_stable > 0:
            allowed_stable = max(allowed_stable, knobs.activation_scale)
        if wanted_panic > 0:
            allowed_panic = max(allowed_panic, knobs.activation_scale)
    since_s, panic_pods = past.panic_since_s, past.panic_pods
    if wanted_panic / pods >= knobs.panic_threshold:
        since_s = now_s
    elif since_s is not None and since_s + knobs.stable_window_s < now_s:
        since_s, panic_pods = None, 0
    desired = allowed_stable
    if since_s is not None:
        desired = panic_pods = max(panic_pods, allowed_stable, allowed_panic)
    held, delayed = desired, past.delayed
    if knobs.reachable and delayed is not None:
        delayed = buckets.record_maximum(delayed, desired, now_s)
        held = buckets.greatest(delayed)
    found = Scale(
        held,
        stable,
        panic,
        wanted_stable,
        since_s is not None,
        held > desired,
        allowed_stable != wanted_stable,
        _excess(knobs, ready, panic),
    )
    return found, State(past.stable, past.panic, delayed, since_s, panic_pods)


def _pods(ratio: float) -> int:
    return min(math.ceil(ratio), INT32_MAX)


def _excess(knobs: Knobs, ready: int, panic: float) -> int:
    capacity = knobs.target_burst_capacity
    if capacity == 0:
        return 0
    if capacity < 0:
        return -1
    return math.floor(ready * knobs.total - capacity - panic)
