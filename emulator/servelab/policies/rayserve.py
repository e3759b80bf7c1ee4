"""Ray Serve: open requests over target, gain factors, and delays that must pass without a break.

Source: ray 2.57.0: python/ray/serve/autoscaling_policy.py, config.py (AutoscalingConfig),
_private/constants.py, _private/router.py, _private/autoscaling_state.py. The controller's loop of
0.1 s is not stepped: between two reports, only the end of a delay can change its mind.
"""

import dataclasses
import math
from dataclasses import dataclass

from servelab.policies.decision import Decision, Reason
from servelab.policies.observation import Observation

LOOP_S = 0.1  # RAY_SERVE_CONTROL_LOOP_INTERVAL_S
RECORD_FACTOR = 0.2  # RAY_SERVE_AUTOSCALING_METRIC_RECORD_INTERVAL_FACTOR
STALE_S = 10.0  # RAY_SERVE_MIN_HANDLE_METRICS_TIMEOUT_S
ROUNDING_S = 1e-6  # _DELAY_ELAPSED_EPS_S


@dataclass(frozen=True, slots=True)
class State:
    """What handle and controller remember of one deployment."""

    record_at_s: float
    push_at_s: float
    samples: tuple[tuple[float, float], ...] = ()  # (time, open requests) seen by the handle
    reported: tuple[float, float] | None = None  # when and what mean the controller was told
    leaning: int = 0  # which way it has wanted to go: 1 up, -1 down
    leaning_since_s: float = 0.0

    @property
    def total(self) -> float:
        """Open requests, as the controller knows; a handle that is not heard of has none."""
        return 0.0 if self.reported is None else self.reported[1]


@dataclass(frozen=True, slots=True)
class RayServe:
    """One deployment's AutoscalingConfig. Factors None: 1."""

    target: float = 2.0  # target_ongoing_requests
    min_replicas: int = 1  # min_replicas
    max_replicas: int = 100  # max_replicas: 1, or 100 with num_replicas="auto"
    upscale_delay_s: float = 30.0  # upscale_delay_s
    downscale_delay_s: float = 600.0  # downscale_delay_s
    downscale_to_zero_delay_s: float | None = None  # None: downscale_delay_s
    upscaling_factor: float = 1.0  # upscaling_factor, smoothing_factor
    downscaling_factor: float = 1.0  # downscaling_factor, smoothing_factor
    look_back_s: float = 30.0  # look_back_period_s
    metrics_interval_s: float = 10.0  # metrics_interval_s

    @property
    def woken(self) -> bool:
        """A handle without replicas reports at once."""
        return True

    @property
    def record_s(self) -> float:
        """Seconds between two samples of a handle."""
        return min(self.look_back_s * RECORD_FACTOR, self.metrics_interval_s)

    def start(self, count: int, now_s: float) -> State:
        """A deployment whose handle starts now."""
        return State(now_s + self.record_s, now_s + self.metrics_interval_s)

    def decide(self, seen: Observation, past: State, now_s: float) -> tuple[Decision, State]:
        """Sample and report if it is time to, then run the controller's loop once."""
        past = self._reported(seen, past, now_s)
        wanted, reason = self._wanted(seen, past)
        count = wanted
        if seen.ready:
            count, past = self._delayed(seen.count, wanted, past, now_s)
        limits: tuple[Reason, ...] = ()
        if count != wanted:
            up = wanted > seen.count
            limits = (Reason.STABILIZING_UP if up else Reason.STABILIZING_DOWN,)
        bounded = max(self.min_replicas, min(self.max_replicas, count))
        if bounded != count:
            reason = Reason.AT_MINIMUM if bounded > count else Reason.AT_MAXIMUM
            limits = (*limits, reason)
        elif limits:
            reason = limits[0]
        total = past.total
        why = f"{total:g} open on average at {self.target:g} each: {wanted}"
        why += f", {reason}" if limits else ""
        inputs = {"requests": total, "target": self.target, "running": float(seen.ready)}
        at_s = min(past.record_at_s, past.push_at_s, self._ends_s(seen.count, past))
        return Decision(bounded, seen.count, reason, why, inputs, limits, wanted, at_s), past

    def _reported(self, seen: Observation, past: State, now_s: float) -> State:
        """Without replicas a queued request is reported at once, as a mean like any report."""
        samples, record_at_s, push_at_s = past.samples, past.record_at_s, past.push_at_s
        if now_s >= record_at_s:
            record_at_s = now_s + self.record_s
            samples = samples if seen.demand is None else (*samples, (now_s, seen.demand))
        samples = tuple(each for each in samples if each[0] >= now_s - self.look_back_s)
        pushing, told = now_s >= push_at_s, past.reported
        if told is not None and now_s - told[0] >= max(2 * self.metrics_interval_s, STALE_S):
            told = None
        if seen.demand is not None and (pushing or (seen.ready == 0 and seen.held > 0)):
            told = now_s, mean(samples) if samples else seen.demand
        push_at_s = now_s + self.metrics_interval_s if pushing else push_at_s
        return dataclasses.replace(
            past, samples=samples, reported=told, record_at_s=record_at_s, push_at_s=push_at_s
        )

    def _wanted(self, seen: Observation, past: State) -> tuple[int, Reason]:
        """What the policy asks for, before delays; from zero there are none."""
        total, running = past.total, seen.ready
        if running == 0:
            if total > 0:
                wanted = max(math.ceil(self.upscaling_factor), seen.count)
                return wanted, Reason.ACTIVATION
            return seen.count, Reason.STEADY_LOAD
        desired = running * (total / (self.target * running))
        return max(0, scaled(self, desired, running)), Reason.STEADY_LOAD

    def _delayed(self, current: int, wanted: int, past: State, now_s: float) -> tuple[int, State]:
        """Move only once the same direction was wanted for its delay; to zero only from one."""
        leaning = (wanted > current) - (wanted < current)
        since_s = past.leaning_since_s if leaning == past.leaning else now_s
        if leaning == 0:
            return current, dataclasses.replace(past, leaning=0)
        if now_s - since_s + ROUNDING_S < self._delay_s(current, leaning):
            return current, dataclasses.replace(past, leaning=leaning, leaning_since_s=since_s)
        least = 0 if current == 1 else 1
        return max(least, wanted), dataclasses.replace(past, leaning=0)

    def _delay_s(self, current: int, leaning: int) -> float:
        if leaning > 0:
            return self.upscale_delay_s
        if current == 1 and self.downscale_to_zero_delay_s is not None:
            return self.downscale_to_zero_delay_s
        return self.downscale_delay_s

    def _ends_s(self, current: int, past: State) -> float:
        if past.leaning == 0:
            return math.inf
        return past.leaning_since_s + self._delay_s(current, past.leaning)


def mean(samples: tuple[tuple[float, float], ...]) -> float:
    """The mean of samples, each alike."""
    return sum(value for _, value in samples) / len(samples)


def scaled(rules: RayServe, desired: float, running: int) -> int:
    """Move from the running count by the gain factor; down by one at least."""
    if running == 0:
        return math.ceil(desired)
    change = desired - running
    factor = rules.upscaling_factor if change > 0 else rules.downscaling_factor
    count = math.ceil(running + factor * change)
    return count - 1 if math.ceil(desired) < running and count == running else count
