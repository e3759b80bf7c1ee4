"""KEDA: between zero and one by itself, above that by the HorizontalPodAutoscaler it makes.

Source: kedacore/keda 8b4f083: pkg/scaling/scale_handler.go, pkg/scaling/executor/
scale_scaledobjects.go, pkg/fallback/fallback.go, apis/keda/v1alpha1/{scaledobject,withtriggers}
_types.go. Polling triggers only, one trigger of type AverageValue.
"""

import dataclasses
import math
from dataclasses import dataclass
from enum import StrEnum

from modelserve.api import spec as api
from servelab.policies import hpa, hpametrics, scalingrules
from servelab.policies.decision import Decision, Reason, hold
from servelab.policies.observation import Observation


class Keep(StrEnum):
    """What a fallback's count is set against."""

    STATIC = "static"
    CURRENT = "currentReplicas"
    CURRENT_IF_HIGHER = "currentReplicasIfHigher"
    CURRENT_IF_LOWER = "currentReplicasIfLower"


@dataclass(frozen=True, slots=True)
class Fallback:
    """The count after more than ``failure_threshold`` queries in a row have failed."""

    failure_threshold: int
    replicas: int
    behavior: Keep = Keep.STATIC

    def count(self, current: int) -> int:
        """The count to fall back on."""
        if self.behavior is Keep.CURRENT:
            return current
        if self.behavior is Keep.CURRENT_IF_HIGHER:
            return max(current, self.replicas)
        if self.behavior is Keep.CURRENT_IF_LOWER:
            return min(current, self.replicas)
        return self.replicas


@dataclass(frozen=True, slots=True)
class State:
    """What operator and controller remember of one ScaledObject."""

    created_s: float
    poll_at_s: float
    hpa: hpa.State
    last_active_s: float | None = None  # lastActiveTime
    failures: int = 0  # queries in a row


@dataclass(frozen=True, slots=True)
class Keda:
    """One ScaledObject with one trigger; ``target`` is the trigger's threshold for a replica."""

    target: float
    counts: api.QueueDepthCounts = api.QueueDepthCounts.DEMAND
    activation: float = 0.0  # activationThreshold; active is what is above
    polling_s: float = 30.0  # pollingInterval
    cooldown_s: float = 300.0  # cooldownPeriod
    initial_cooldown_s: float = 0.0  # initialCooldownPeriod
    min_replicas: int = 0  # minReplicaCount
    max_replicas: int = 100  # maxReplicaCount
    idle_replicas: int | None = None  # idleReplicaCount
    fallback: Fallback | None = None
    null_is_zero: bool = True  # the Prometheus scaler's ignoreNullValues
    behavior: scalingrules.Behavior | None = None  # advanced.horizontalPodAutoscalerConfig

    @property
    def woken(self) -> bool:
        """A polled trigger is told nothing."""
        return False

    @property
    def scaler(self) -> hpa.Hpa:
        """The HorizontalPodAutoscaler it makes; with at least one replica."""
        metric = hpametrics.Metric(self.target, counts=self.counts)
        least = max(1, self.min_replicas)
        return hpa.Hpa((metric,), least, self.max_replicas, behavior=self.behavior)

    def start(self, count: int, now_s: float) -> State:
        """A ScaledObject that is made now."""
        state = dataclasses.replace(self.scaler.start(count, now_s), slept=False)
        return State(now_s, now_s, state)

    def decide(self, seen: Observation, past: State, now_s: float) -> tuple[Decision, State]:
        """Poll, then sync, whichever it is time to."""
        current, found = seen.count, None
        if now_s >= past.poll_at_s:
            found, past = self._polled(seen, past, now_s)
            seen = dataclasses.replace(seen, count=found.desired)
        if now_s >= past.hpa.due_at_s:
            synced, past = self._synced(seen, past, now_s)
            # At zero the autoscaler sleeps; what KEDA did itself tells more than that.
            if found is None or synced.changes or not (found.changes or seen.count == 0):
                found = synced
        at_s = min(past.poll_at_s, past.hpa.due_at_s)
        if found is None:
            return hold(current, Reason.NOT_DUE, "between poll and sync", at_s), past
        return dataclasses.replace(found, current=current, revisit_at_s=at_s), past

    def _synced(self, seen: Observation, past: State, now_s: float) -> tuple[Decision, State]:
        if seen.count > 0:
            seen, past = self._queried(seen, past)
        decision, state = self.scaler.decide(seen, past.hpa, now_s)
        return decision, dataclasses.replace(past, hpa=state)

    def _figure(self, seen: Observation) -> float | None:
        figure = seen.counted(self.counts)
        if figure is not None and math.isfinite(figure):
            return figure
        return 0.0 if self.null_is_zero else None

    def _falls_back(self, failures: int) -> bool:
        return self.fallback is not None and failures > self.fallback.failure_threshold

    def _queried(self, seen: Observation, past: State) -> tuple[Observation, State]:
        """What the autoscaler gets for an answer: the figure, or the fallback made into one."""
        figure = self._figure(seen)
        failures = past.failures + 1 if figure is None else 0
        if figure is None and self.fallback is not None and self._falls_back(failures):
            figure = self.target * self.fallback.count(seen.count)
        told = dataclasses.replace(seen, demand=figure, waiting=figure)
        return told, dataclasses.replace(past, failures=failures)

    def _polled(self, seen: Observation, past: State, now_s: float) -> tuple[Decision, State]:
        """The executor: activate, deactivate, or leave it to the autoscaler."""
        current, figure = seen.count, self._figure(seen)
        failures = past.failures + 1 if figure is None else 0
        falls_back = self._falls_back(failures)
        active = falls_back or (figure is not None and figure > self.activation)
        last_s = past.last_active_s
        if active:
            count, reason, why = self._active(current)
            last_s = now_s
        elif figure is None and (self.fallback is None or self.fallback.replicas):
            count, reason, why = current, Reason.NO_SIGNAL, "no figures: the count is held"
        else:
            count, reason, why = self._inactive(current, past, now_s)
        if falls_back:
            reason = Reason.FALLBACK
        inputs = {} if figure is None else {"metric": figure, "activation": self.activation}
        decision = Decision(count, current, reason, why, inputs, unlimited=count)
        due_s = now_s + self.polling_s
        return decision, dataclasses.replace(
            past, poll_at_s=due_s, last_active_s=last_s, failures=failures
        )

    def _active(self, current: int) -> tuple[int, Reason, str]:
        below = self.idle_replicas is not None and current < self.min_replicas
        if below or current == 0:
            return max(1, self.min_replicas), Reason.ACTIVATION, "the trigger got active"
        return current, Reason.STEADY_LOAD, "the trigger is active, the rest is the HPA's"

    def _inactive(self, current: int, past: State, now_s: float) -> tuple[int, Reason, str]:
        idle = self.idle_replicas
        may_idle = idle is not None and current > idle
        if may_idle or (current > 0 and self.min_replicas == 0):
            # A real loop always comes a little late, so what is reached has passed.
            since_s, cooldown_s = past.last_active_s, self.cooldown_s
            if since_s is None:
                since_s, cooldown_s = past.created_s, self.initial_cooldown_s
            if now_s < since_s + cooldown_s:
                quiet_s = now_s - since_s
                return current, Reason.COOLDOWN, f"quiet for {quiet_s:g} of {cooldown_s:g} s"
            count = self.min_replicas if idle is None else idle
            return count, Reason.COOLDOWN, "quiet for the whole cooldown"
        if idle is None and current < self.min_replicas:
            return self.min_replicas, Reason.AT_MINIMUM, "below minReplicaCount"
        return current, Reason.STEADY_LOAD, "the trigger is not active, nothing to do"
