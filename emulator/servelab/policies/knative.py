"""Knative Serving: scraped each second, decided each two, and what becomes of the count.

Source: knative.dev/serving v0.51.0: pkg/autoscaler/metrics (collector.go, stats_scraper.go),
pkg/autoscaler/scaling/multiscaler.go, pkg/reconciler/autoscaling/kpa (kpa.go, scaler.go); the
defaults from config/core/configmaps/autoscaler.yaml. The count itself: ``kpa``.
"""

import dataclasses
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from servelab.policies import kpa
from servelab.policies.decision import Decision, Reason
from servelab.policies.observation import Observation

SCRAPE_S = 1.0  # collector.go, scrapeTickInterval
UTILIZATION = 0.7  # container-concurrency-target-percentage
TARGET_MINIMUM = 0.01  # autoscaling.TargetMin
DEADLINE_BUFFER_S = 30.0  # scaler.go, activationTimeoutBuffer
_UNKNOWN = -1


class Counts(StrEnum):
    """What is averaged: open requests, or requests that arrive per second."""

    CONCURRENCY = "concurrency"
    RPS = "rps"


class Activity(StrEnum):
    """The condition Active of a PodAutoscaler."""

    ACTIVATING = "Unknown"
    ACTIVE = "True"
    INACTIVE = "False"


@dataclass(frozen=True, slots=True)
class State:
    """What autoscaler and reconciler remember of one revision."""

    decider: kpa.State
    scrape_at_s: float
    tick_at_s: float
    activity: Activity
    since_s: float  # of the activity
    found: kpa.Scale | None = None  # what the last valid tick found
    initialized: bool = True  # the initial scale has been reached
    proxied_since_s: float | None = None  # the activator is in the path since then
    arrivals: int = 0  # since the last scrape


@dataclass(frozen=True, slots=True)
class Knative:
    """One revision's settings. ``max_scale`` 0: no limit."""

    knobs: kpa.Knobs = field(default_factory=kpa.Knobs)
    counts: Counts = Counts.CONCURRENCY
    min_scale: int = 0  # min-scale
    max_scale: int = 0  # max-scale
    initial_scale: int = 1  # initial-scale
    scale_to_zero: bool = True  # enable-scale-to-zero
    grace_s: float = 30.0  # scale-to-zero-grace-period
    retention_s: float = 0.0  # scale-to-zero-pod-retention-period
    progress_deadline_s: float = 600.0  # config-deployment, progress-deadline

    @classmethod
    def on_concurrency(cls, total: float, *, min_scale: int = 0, max_scale: int = 0) -> Self:
        """For pods that can have ``total`` requests at a time, at the default 70 %."""
        target = max(TARGET_MINIMUM, total * UTILIZATION)
        knobs = kpa.Knobs(target=target, total=total)
        return cls(knobs, min_scale=min_scale, max_scale=max_scale)

    @property
    def woken(self) -> bool:
        """The activator tells the autoscaler at once."""
        return True

    def start(self, count: int, now_s: float) -> State:
        """A controller that (re)starts over ``count`` pods of an older revision."""
        activity = Activity.ACTIVE if count else Activity.INACTIVE
        return State(kpa.start(self.knobs, count, now_s), now_s, now_s, activity, now_s)

    def created(self, now_s: float) -> State:
        """A new revision, which comes with ``initial_scale`` pods."""
        activity = Activity.ACTIVATING if self.initial_scale else Activity.INACTIVE
        decider = kpa.start(self.knobs, 0, now_s)
        return State(decider, now_s, now_s, activity, now_s, initialized=False)

    def decide(self, seen: Observation, past: State, now_s: float) -> tuple[Decision, State]:
        """Scrape and tick if it is time to, then reconcile."""
        poked = seen.ready == 0 and bool(seen.demand) and _desired(past) <= 0
        if seen.arrivals:
            past = dataclasses.replace(past, arrivals=past.arrivals + seen.arrivals)
        if poked or now_s >= past.scrape_at_s:
            past = self._scraped(seen, past, now_s)
        if poked or now_s >= past.tick_at_s:
            found, decider = kpa.scale(self.knobs, past.decider, seen.ready, now_s)
            tick_at_s = now_s + kpa.TICK_S if now_s >= past.tick_at_s else past.tick_at_s
            past = dataclasses.replace(
                past, decider=decider, found=found or past.found, tick_at_s=tick_at_s
            )
        want, count, reason = self._reconciled(seen, past, now_s)
        past = self._observed(seen, past, want, now_s)
        asleep = count == seen.count == seen.ready == 0 and not seen.demand
        at_s = None if asleep else min(past.scrape_at_s, past.tick_at_s)
        return _decision(seen, past, count, reason, at_s), past

    def _scraped(self, seen: Observation, past: State, now_s: float) -> State:
        """Take in what pods and activator report; pods that are not ready report nothing."""
        value = seen.demand if self.counts is Counts.CONCURRENCY else float(past.arrivals)
        decider = past.decider
        if value is not None and (seen.ready or value):
            decider = kpa.record(decider, value, now_s)
        return dataclasses.replace(past, decider=decider, scrape_at_s=now_s + SCRAPE_S, arrivals=0)

    def _reconciled(self, seen: Observation, past: State, now_s: float) -> tuple[int, int, Reason]:
        """What is wanted (-1: unknown), the count to write, and why."""
        desired, current = _desired(past), seen.count
        if desired < 0 and past.activity is not Activity.ACTIVATING:
            return desired, current, Reason.NO_SIGNAL
        least = self.min_scale
        if self.initial_scale > 1 and not past.initialized and self.knobs.reachable:
            least = max(least, self.initial_scale)
        bounded, reason = max(desired, least), _reason(past)
        if bounded > desired:
            reason = Reason.AT_MINIMUM
        if self.max_scale and bounded > self.max_scale:
            bounded, reason = self.max_scale, Reason.AT_MAXIMUM
        if bounded:
            return bounded, bounded, reason
        return self._to_zero(current, past, now_s)

    def _to_zero(self, current: int, past: State, now_s: float) -> tuple[int, int, Reason]:
        """Zero takes an idle stable window, then the activator in the path for the grace period."""
        for_s = now_s - past.since_s
        if not self.scale_to_zero:
            return 1, 1, Reason.AT_MINIMUM
        if past.activity is Activity.ACTIVATING:
            if for_s >= self.progress_deadline_s + DEADLINE_BUFFER_S:
                return 0, 0, Reason.DEADLINE
            return _UNKNOWN, current, Reason.ACTIVATION
        if past.activity is Activity.ACTIVE:
            if for_s >= self.knobs.stable_window_s:
                return 0, current, Reason.COOLDOWN
            return 1, 1, Reason.COOLDOWN
        retention_s = self.retention_s if self.knobs.reachable else 0.0
        proxied_s = 0.0 if past.proxied_since_s is None else now_s - past.proxied_since_s
        if for_s >= max(self.grace_s, retention_s):
            return 0, 0, Reason.COOLDOWN
        if for_s < retention_s or proxied_s < self.grace_s:
            return 0, current, Reason.COOLDOWN
        return 0, 0, Reason.COOLDOWN

    def _observed(self, seen: Observation, past: State, want: int, now_s: float) -> State:
        """The conditions after this reconcile, and whether the activator is in the path."""
        enough = max(self.min_scale, 1 if past.initialized else self.initial_scale)
        activity = past.activity
        if want == 0 or enough == 0:
            activity = Activity.INACTIVE
        elif want > 0 or activity is not Activity.INACTIVE:
            activity = Activity.ACTIVE if seen.ready >= enough else Activity.ACTIVATING
        excess = past.found.excess if past.found else _UNKNOWN
        proxied_s = past.proxied_since_s
        if want > 0 and excess >= 0:
            proxied_s = None
        elif proxied_s is None:
            proxied_s = now_s
        initialized = past.initialized or seen.ready >= enough
        since_s = past.since_s if activity is past.activity else now_s
        if (activity, initialized, proxied_s) == (
            *(past.activity, past.initialized, past.proxied_since_s),
        ):
            return past
        return dataclasses.replace(
            past,
            activity=activity,
            since_s=since_s,
            initialized=initialized,
            proxied_since_s=proxied_s,
        )


def _desired(past: State) -> int:
    return past.found.desired if past.found else _UNKNOWN


def _reason(past: State) -> Reason:
    found = past.found
    if found is None:
        return Reason.NO_SIGNAL
    if found.panicking:
        return Reason.PANIC
    if found.delayed:
        return Reason.STABILIZING_DOWN
    return Reason.RATE_LIMITED if found.limited else Reason.STEADY_LOAD


def _decision(
    seen: Observation, past: State, count: int, reason: Reason, at_s: float | None
) -> Decision:
    found = past.found
    if found is None:
        why = "nothing was measured yet"
        return Decision(count, seen.count, reason, why, unlimited=count, revisit_at_s=at_s)
    inputs = {"stable": found.stable, "panic": found.panic, "ready": float(seen.ready)}
    why = f"on average {found.stable:g} in the stable window, {found.panic:g} in the panic window"
    why += f": {found.desired} pods are desired, {count} asked for"
    return Decision(count, seen.count, reason, why, inputs, (), found.unlimited, at_s)
