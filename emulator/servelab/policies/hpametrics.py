"""What a HorizontalPodAutoscaler's metrics ask for, before windows, rates and bounds.

Source: k8s.io/kubernetes v1.37.2, pkg/controller/podautoscaler (replica_calculator.go,
horizontal.go, metrics/utilization.go). As there, figures are whole thousandths.
"""

import decimal
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from modelserve.api import spec as api
from servelab.policies.observation import Observation, Pod

INT32_MAX = 2**31 - 1


class Source(StrEnum):
    """Where a metric's figure comes from, and so what it is set against."""

    EXTERNAL_AVERAGE = "ExternalAverageValue"  # a total, by replica (also: object, AverageValue)
    EXTERNAL_VALUE = "ExternalValue"  # a total as such (also: object, Value)
    PODS = "Pods"  # a figure of each pod (custom metrics)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric and its target, in requests."""

    target: float
    source: Source = Source.EXTERNAL_AVERAGE
    counts: api.QueueDepthCounts = api.QueueDepthCounts.DEMAND

    @property
    def wakes(self) -> bool:
        """Whether it is known while no pod runs."""
        return self.source is not Source.PODS


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a ratio may be from 1 without a change."""

    up: float = 0.1  # horizontal-pod-autoscaler-tolerance
    down: float = 0.1

    def covers(self, ratio: float) -> bool:
        """Whether a ratio is near enough; not a number is not."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


def recommend(metrics: Sequence[Metric], tolerance: Tolerance, seen: Observation) -> int | None:
    """The greatest count any metric asks for.

    None where no metric has a figure, or some have none and the others would shrink.
    """
    counts = [propose(metric, tolerance, seen) for metric in metrics]
    known = [count for count in counts if count is not None]
    if not known or (len(known) < len(counts) and max(known) < seen.count):
        return None
    return max(known)


def propose(metric: Metric, tolerance: Tolerance, seen: Observation) -> int | None:
    """What one metric asks for; None without a figure."""
    target = milli(metric.target)
    if metric.source is Source.PODS:
        return _by_pod(target, tolerance, seen)
    figure = seen.counted(metric.counts)
    if figure is None or not math.isfinite(figure):
        return None
    usage = milli(figure)
    if metric.source is Source.EXTERNAL_VALUE:
        return _by_ratio(usage / target, tolerance, seen)
    replicas = sum(not pod.terminating for pod in seen.pods) if seen.pods else seen.count
    if replicas and tolerance.covers(usage / (target * replicas)):
        return replicas
    return _ceil(usage / target)


def milli(value: float) -> int:
    """Thousandths, rounded up, of the decimal number that a float is written as."""
    exact = decimal.Decimal(repr(float(value))) * 1000
    return int(exact.to_integral_value(decimal.ROUND_CEILING))


def _by_ratio(ratio: float, tolerance: Tolerance, seen: Observation) -> int | None:
    """Ratio times pods that are ready, terminating ones too, as the controller counts them."""
    if seen.count == 0:
        return _ceil(ratio)
    if tolerance.covers(ratio):
        return seen.count
    if not seen.pods:
        return None
    return _ceil(ratio * sum(pod.ready for pod in seen.pods))


def _by_pod(target: int, tolerance: Tolerance, seen: Observation) -> int | None:
    """Mean over pods. Those without a figure damp the change: full on the way down, idle up."""
    pods = [pod for pod in seen.pods if not pod.terminating]
    figures = {pod.name: milli(pod.load) for pod in pods if _told(pod) and pod.load is not None}
    missing = [pod.name for pod in pods if not pod.pending and pod.name not in figures]
    pending = [pod.name for pod in pods if pod.pending]
    if not figures:
        return None
    ratio = _mean(figures) / target
    starting = bool(pending) and ratio > 1.0
    if not starting and not missing:
        return seen.count if tolerance.covers(ratio) else _ceil(ratio * len(figures))
    if ratio < 1.0:
        figures |= dict.fromkeys(missing, target)
    elif ratio > 1.0:
        figures |= dict.fromkeys(missing, 0)
    if starting:
        figures |= dict.fromkeys(pending, 0)
    damped = _mean(figures) / target
    if tolerance.covers(damped) or (ratio < 1.0 < damped) or (damped < 1.0 < ratio):
        return seen.count
    count = _ceil(damped * len(figures))
    turned = (damped < 1.0 and count > seen.count) or (damped > 1.0 and count < seen.count)
    return seen.count if turned else count


def _told(pod: Pod) -> bool:
    return not pod.pending and pod.load is not None and math.isfinite(pod.load)


def _mean(figures: Mapping[str, int]) -> int:
    return sum(figures.values()) // len(figures)


def _ceil(ratio: float) -> int:
    return min(math.ceil(ratio), INT32_MAX)
