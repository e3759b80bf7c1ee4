"""KubeAI: a mean of open requests over ten minutes, and one replica at once from zero.

Source: kubeai-project/kubeai f442a2c (v0.22.1): internal/modelautoscaler/autoscaler.go,
internal/modelclient/scale.go, internal/movingaverage/simple.go, internal/config/system.go,
api/k8s/v1/model_types.go.
"""

import math
from dataclasses import dataclass

from servelab.policies.decision import Decision, Reason, hold
from servelab.policies.observation import Observation


@dataclass(frozen=True, slots=True)
class State:
    """The last samples, a ring filled with zeros, and the ticks in a row that asked for less."""

    due_at_s: float
    samples: tuple[float, ...]
    next: int = 0
    lower: int = 0


@dataclass(frozen=True, slots=True)
class KubeAi:
    """One Model. ``max_replicas`` None: no limit."""

    target: float = 100.0  # targetRequests
    min_replicas: int = 0  # minReplicas
    max_replicas: int | None = None  # maxReplicas
    scale_down_delay_s: float = 30.0  # scaleDownDelaySeconds
    interval_s: float = 10.0  # modelAutoscaling.interval
    window_s: float = 600.0  # modelAutoscaling.timeWindow

    @property
    def woken(self) -> bool:
        """Its proxy writes the first replica itself."""
        return True

    @property
    def sample_count(self) -> int:
        """Samples that the mean is over."""
        return math.ceil(self.window_s / self.interval_s)

    @property
    def lower_ticks(self) -> int:
        """Ticks that must have asked for less before one is heeded."""
        return math.ceil(self.scale_down_delay_s / self.interval_s)

    def start(self, count: int, now_s: float) -> State:
        """A ticker that starts now; no state was saved."""
        return State(now_s + self.interval_s, (0.0,) * self.sample_count)

    def decide(self, seen: Observation, past: State, now_s: float) -> tuple[Decision, State]:
        """Wake for a held request, tick if it is time to. A failed scrape skips the tick."""
        if now_s < past.due_at_s:
            if seen.count == 0 and seen.held > 0:
                return self._woken(past), past
            return hold(seen.count, Reason.NOT_DUE, "between two ticks", past.due_at_s), past
        due_at_s = now_s + self.interval_s
        if seen.demand is None:
            why = "no figures: the tick is skipped"
            state = State(due_at_s, past.samples, past.next, past.lower)
            return hold(seen.count, Reason.NO_SIGNAL, why, due_at_s), state
        samples = sampled(past.samples, past.next, seen.demand)
        state = State(due_at_s, samples, (past.next + 1) % len(samples), past.lower)
        return self._ticked(seen, state)

    def _woken(self, past: State) -> Decision:
        why = "a request is held and nothing runs: one replica"
        return Decision(1, 0, Reason.ACTIVATION, why, unlimited=1, revisit_at_s=past.due_at_s)

    def _ticked(self, seen: Observation, past: State) -> tuple[Decision, State]:
        current, average = seen.count, mean(past.samples)
        wanted = math.ceil(average / self.target)
        count = max(self.min_replicas, min(wanted, self.max_replicas or wanted))
        reason = Reason.STEADY_LOAD
        if count != wanted:
            reason = Reason.AT_MINIMUM if count > wanted else Reason.AT_MAXIMUM
        lower, limits = 0, () if count == wanted else (reason,)
        if count < current:
            lower = past.lower
            if lower < self.lower_ticks:
                count, reason = current, Reason.STABILIZING_DOWN
                lower, limits = lower + 1, (*limits, reason)
        why = f"{average:g} on average over {self.window_s:g} s at {self.target:g} each: {wanted}"
        inputs = {"average": average, "target": self.target, "lower_ticks": float(lower)}
        decision = Decision(count, current, reason, why, inputs, limits, wanted, past.due_at_s)
        return decision, State(past.due_at_s, past.samples, past.next, lower)


def sampled(samples: tuple[float, ...], at: int, value: float) -> tuple[float, ...]:
    """The ring with one sample replaced."""
    return (*samples[:at], value, *samples[at + 1 :])


def mean(samples: tuple[float, ...]) -> float:
    """The mean over the whole ring, those not yet written included."""
    return sum(samples) / len(samples)
