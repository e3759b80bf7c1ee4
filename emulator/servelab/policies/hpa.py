"""The HorizontalPodAutoscaler: one sync, from observation to count.

Source: k8s.io/kubernetes v1.37.2, pkg/controller/podautoscaler/horizontal.go; the defaults from
its config/v1alpha1/defaults.go, and https://kubernetes.io/docs/tasks/run-application/
horizontal-pod-autoscale/. The delay of a metrics pipeline is not part of it.
"""

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Self

from servelab.policies import hpametrics, scalingrules
from servelab.policies.decision import Decision, Reason, hold
from servelab.policies.observation import Observation

SYNC_S = 15.0  # horizontal-pod-autoscaler-sync-period


@dataclass(frozen=True, slots=True)
class State:
    """What the controller remembers of one autoscaler."""

    due_at_s: float
    memory: scalingrules.Memory = field(default_factory=scalingrules.Memory)
    # It was this autoscaler that went to zero (condition ScaledToZero); a zero set by others is
    # left to them.
    slept: bool = False


@dataclass(frozen=True, slots=True)
class Hpa:
    """One HorizontalPodAutoscaler. ``behavior`` None: the controller's own limits.

    ``scale_to_zero`` is the feature gate HPAScaleToZero, on by default since 1.37; it takes a
    metric that is known while no pod runs.
    """

    metrics: tuple[hpametrics.Metric, ...]
    min_replicas: int = 1  # default of the API
    max_replicas: int = 32  # the API demands one
    tolerance: hpametrics.Tolerance = field(default_factory=hpametrics.Tolerance)
    behavior: scalingrules.Behavior | None = None
    down_window_s: float = scalingrules.DOWN_WINDOW_S
    sync_s: float = SYNC_S
    scale_to_zero: bool = True

    @classmethod
    def on_demand(cls, target: float, *, min_replicas: int = 1, max_replicas: int = 32) -> Self:
        """On one external metric with all requests that are open, ``target`` for each replica."""
        metric = hpametrics.Metric(target)
        return cls((metric,), min_replicas=min_replicas, max_replicas=max_replicas)

    @property
    def woken(self) -> bool:
        """Nobody tells it of a request."""
        return False

    def start(self, count: int, now_s: float) -> State:
        """A controller that has just found the autoscaler and ``count`` replicas.

        A zero found at the start is taken for its own, so that it may wake.
        """
        memory = scalingrules.remember(scalingrules.Memory(), count, now_s, self._keep_s)
        return State(now_s, memory, slept=count == 0)

    def decide(self, seen: Observation, past: State, now_s: float) -> tuple[Decision, State]:
        """Sync if it is time to."""
        if now_s < past.due_at_s:
            why = "between two syncs"
            return hold(seen.count, Reason.NOT_DUE, why, past.due_at_s), past
        past = dataclasses.replace(past, due_at_s=now_s + self.sync_s)
        decision, state = self._sync(seen, past, now_s)
        return decision, self._applied(decision, state, now_s)

    def _sync(self, seen: Observation, past: State, now_s: float) -> tuple[Decision, State]:
        """What to do now; ``past.due_at_s`` is the next sync."""
        current = seen.count
        if current == 0 and not (past.slept and (self.min_replicas > 0 or self._wakes)):
            why = "zero was set by somebody else: left alone"
            return hold(0, Reason.DISABLED, why, past.due_at_s), past
        if current > self.max_replicas:
            return self._moved(current, self.max_replicas, Reason.AT_MAXIMUM, past), past
        if 0 < current < self.min_replicas:
            return self._moved(current, self.min_replicas, Reason.AT_MINIMUM, past), past
        wanted = hpametrics.recommend(self.metrics, self.tolerance, seen)
        if wanted is None:
            why = "no figures: the count is held"
            return hold(current, Reason.NO_SIGNAL, why, past.due_at_s), past
        wanted = max(0, wanted)
        count, limits = self._limited(current, wanted, past.memory, now_s)
        if current == 0 and count < self.min_replicas:
            count, limits = self.min_replicas, (*limits, Reason.AT_MINIMUM)
        memory = scalingrules.remember(past.memory, wanted, now_s, self._keep_s)
        decision = self._decision(seen, wanted, count, limits, past)
        return decision, dataclasses.replace(past, memory=memory)

    @property
    def _wakes(self) -> bool:
        return any(metric.wakes for metric in self.metrics)

    @property
    def _keep_s(self) -> float:
        if self.behavior is None:
            return self.down_window_s
        return max(self.behavior.up.window_s, self.behavior.down.window_s)

    def _limited(
        self, current: int, wanted: int, memory: scalingrules.Memory, now_s: float
    ) -> tuple[int, tuple[Reason, ...]]:
        """Windows, then rates and bounds."""
        if self.behavior is None:
            count = scalingrules.highest(memory, wanted, now_s, self.down_window_s)
            most, least = scalingrules.most_without_behavior(current), -math.inf
            growing = shrinking = True
        else:
            count = scalingrules.stabilize(memory, self.behavior, current, wanted, now_s)
            most = scalingrules.most(memory, self.behavior, current, now_s)
            least = scalingrules.least(memory, self.behavior, current, now_s)
            growing, shrinking = count > current, count < current
        limits: tuple[Reason, ...] = ()
        if count != wanted:
            up = count < wanted
            limits = (Reason.STABILIZING_UP if up else Reason.STABILIZING_DOWN,)
        if shrinking and count < max(self.min_replicas, least):
            reason = Reason.RATE_LIMITED if least > self.min_replicas else Reason.AT_MINIMUM
            return int(max(self.min_replicas, least)), (*limits, reason)
        if growing and count > min(self.max_replicas, most):
            reason = Reason.RATE_LIMITED if most < self.max_replicas else Reason.AT_MAXIMUM
            return min(self.max_replicas, most), (*limits, reason)
        return count, limits

    def _applied(self, decision: Decision, past: State, now_s: float) -> State:
        """Note the change that the decision makes."""
        if not decision.changes:
            return past
        memory, count = past.memory, decision.desired
        if self.behavior is not None:
            memory = scalingrules.changed(memory, self.behavior, decision.current, count, now_s)
        slept = count == 0 and self.min_replicas == 0 and self._wakes and self.scale_to_zero
        return State(past.due_at_s, memory, slept)

    def _moved(self, current: int, count: int, reason: Reason, past: State) -> Decision:
        why = f"{current} is out of bounds: from {current} to {count}"
        return Decision(count, current, reason, why, unlimited=count, revisit_at_s=past.due_at_s)

    def _decision(
        self,
        seen: Observation,
        wanted: int,
        count: int,
        limits: tuple[Reason, ...],
        past: State,
    ) -> Decision:
        current, metric = seen.count, self.metrics[0]
        figure = seen.counted(metric.counts)
        inputs = {"target": metric.target, "count": float(current)}
        inputs |= {} if figure is None else {"metric": figure}
        reason = Reason.STEADY_LOAD
        if count == current:
            reason = limits[-1] if limits else Reason.WITHIN_TOLERANCE
        why = f"{figure or 0.0:g} at {metric.target:g} each ask for {wanted}"
        why += "".join(f", {limit}" for limit in limits)
        why += f": from {current} to {count}" if count != current else f": it stays {current}"
        return Decision(count, current, reason, why, inputs, limits, wanted, past.due_at_s)
