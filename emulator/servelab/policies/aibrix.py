"""AIBrix's PodAutoscaler: the strategies APA and KPA, on the mean load of a pod.

Source: vllm-project/aibrix e3e10f9: pkg/controller/podautoscaler (algorithm/apa.go, algorithm/
kpa.go, context/context.go, metrics/client.go, types/metrics.go, podautoscaler_controller.go).
Its ways are kept: KPA takes the mean of a pod for the total, the cooldown lets the *least* of its
window through on the way down, and at zero pods nothing is measured, so nothing wakes.
"""

import dataclasses
import math
from dataclasses import dataclass
from enum import StrEnum

from modelserve.decide import windows
from servelab.policies.decision import Decision, Reason, hold
from servelab.policies.observation import Observation

GRANULARITY_S = 1.0  # NewMetricsClient(time.Second)


class Strategy(StrEnum):
    """How the count is worked out."""

    APA = "APA"
    KPA = "KPA"


@dataclass(frozen=True, slots=True)
class State:
    """Means by second, newest last, and past recommendations."""

    due_at_s: float
    means: tuple[tuple[int, float], ...] = ()
    recommendations: windows.Recommendations = ()


@dataclass(frozen=True, slots=True)
class AiBrix:
    """One PodAutoscaler. ``target`` is in requests for one pod."""

    target: float
    max_replicas: int
    strategy: Strategy = Strategy.APA
    min_replicas: int = 1  # BaseBounds
    stable_window_s: float = 180.0  # observeWindowSeconds
    panic_window_s: float = 60.0  # panicWindowSeconds
    panic_threshold: float = 2.0  # panic-threshold
    up_rate: float = 2.0  # max-scale-up-rate
    down_rate: float = 2.0  # max-scale-down-rate
    up_tolerance: float = 0.1  # scale-up-tolerance
    down_tolerance: float = 0.1  # scale-down-tolerance
    up_cooldown_s: float = 0.0  # scale-up-cooldown-window
    down_cooldown_s: float = 300.0  # scale-down-cooldown-window
    activation_scale: int = 1  # fixed there
    resync_s: float = 10.0  # DefaultResyncInterval

    @property
    def woken(self) -> bool:
        """Nobody tells it of a request."""
        return False

    def start(self, count: int, now_s: float) -> State:
        """A controller with empty windows."""
        return State(now_s)

    def decide(self, seen: Observation, past: State, now_s: float) -> tuple[Decision, State]:
        """Resync if it is time to."""
        if now_s < past.due_at_s:
            return hold(seen.count, Reason.NOT_DUE, "between two syncs", past.due_at_s), past
        past = dataclasses.replace(past, due_at_s=now_s + self.resync_s)
        current, at_s = seen.count, past.due_at_s
        if current == 0 and self.min_replicas:
            why = "zero was set by somebody else: left alone"
            return hold(0, Reason.DISABLED, why, at_s), past
        bounded = self._bounded(current)
        if bounded != current:
            reason = Reason.AT_MINIMUM if bounded > current else Reason.AT_MAXIMUM
            why = f"{current} is out of bounds: from {current} to {bounded}"
            return Decision(bounded, current, reason, why, {}, (), bounded, at_s), past
        loads = [pod.load for pod in seen.staying if pod.load is not None]
        if seen.staying and not loads:
            return hold(current, Reason.NO_SIGNAL, "no figures of any pod", at_s), past
        means = self._recorded(past.means, loads, now_s)
        return self._advised(current, dataclasses.replace(past, means=means), now_s)

    def _advised(self, current: int, past: State, now_s: float) -> tuple[Decision, State]:
        stable, panic = mean(past.means), mean(self._recent(past.means))
        panicking = False
        if self.strategy is Strategy.APA:
            wanted = apa(self, current, stable)
        else:
            panicking = panics(self, stable, panic)
            wanted = kpa(self, current, stable, panic, panicking)
        wanted = self._bounded(wanted)
        recommended = (*past.recommendations, windows.Recommended(now_s, wanted))
        count = self._bounded(cooled(self, recommended, current, wanted, now_s))
        kept = windows.within(recommended, now_s, max(self.up_cooldown_s, self.down_cooldown_s))
        reason = Reason.PANIC if panicking else Reason.STEADY_LOAD
        if count == current:
            reason = Reason.WITHIN_TOLERANCE if wanted == current else Reason.STABILIZING_DOWN
        why = f"{stable:g} on average in a pod, {panic:g} lately, at {self.target:g}: {wanted}"
        inputs = {"stable": stable, "panic": panic, "target": self.target}
        decision = Decision(count, current, reason, why, inputs, (), wanted, past.due_at_s)
        return decision, dataclasses.replace(past, recommendations=kept)

    def _bounded(self, count: int) -> int:
        return max(self.min_replicas, min(self.max_replicas, count))

    def _recorded(
        self, past: tuple[tuple[int, float], ...], loads: list[float], now_s: float
    ) -> tuple[tuple[int, float], ...]:
        """One mean over pods a second; without pods the windows stay as they are."""
        if not loads:
            return past
        second = math.floor(now_s / GRANULARITY_S)
        oldest = math.floor((now_s - self.stable_window_s) / GRANULARITY_S)
        kept = tuple(entry for entry in past if oldest <= entry[0] < second)
        return (*kept, (second, sum(loads) / len(loads)))

    def _recent(self, means: tuple[tuple[int, float], ...]) -> tuple[tuple[int, float], ...]:
        if not means:
            return ()
        oldest = means[-1][0] - math.floor(self.panic_window_s / GRANULARITY_S)
        return tuple(entry for entry in means if entry[0] >= oldest)


def mean(means: tuple[tuple[int, float], ...]) -> float:
    """The mean of a window, each second alike; 0 without any."""
    return sum(value for _, value in means) / len(means) if means else 0.0


def apa(rules: AiBrix, current: int, load: float) -> int:
    """Current count times load over target, within the rates, outside the tolerances."""
    if rules.target <= 0:
        return current
    ratio = load / rules.target
    if ratio > 1 + rules.up_tolerance:
        return min(math.ceil(current * ratio), math.ceil(rules.up_rate * current))
    if ratio < 1 - rules.down_tolerance:
        return max(math.ceil(current * ratio), math.floor(current / rules.down_rate))
    return current


def panics(rules: AiBrix, stable: float, panic: float) -> bool:
    """Whether the short window leads; also while the long one is empty or all zero."""
    return stable <= 0 or panic / stable > rules.panic_threshold


def kpa(rules: AiBrix, current: int, stable: float, panic: float, panicking: bool) -> int:
    """Load over target, of both windows in panic; the most pods of a panic are not remembered."""
    most = max(1, math.ceil(rules.up_rate * current))
    least = math.floor(current / rules.down_rate)
    counts = []
    for load in (stable, panic) if panicking else (stable,):
        near = 1 - rules.down_tolerance, 1 + rules.up_tolerance
        within = rules.target * near[0] <= load <= rules.target * near[1]
        count = min(max(current if within else math.ceil(load / rules.target), least), most)
        if rules.activation_scale > 1 and count > 0:
            count = max(count, rules.activation_scale)
        counts.append(count)
    return max(counts)


def cooled(
    rules: AiBrix, recommended: windows.Recommendations, current: int, wanted: int, now_s: float
) -> int:
    """The cooldown: the greatest of its window on the way up, the least on the way down."""
    if wanted == current:
        return current
    up = wanted > current
    window_s = rules.up_cooldown_s if up else rules.down_cooldown_s
    counts = [entry.count for entry in recommended if entry.at_s > now_s - window_s]
    return (max if up else min)(counts, default=wanted)
