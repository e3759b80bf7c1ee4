"""Percentiles and areas under step functions."""

import math
from collections.abc import Sequence


def percentile(values: Sequence[float], q: float) -> float:
    """The value below which a share ``q`` (0–1) lies, interpolated; NaN if there is none."""
    if not values:
        return math.nan
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def area(steps: Sequence[tuple[float, float]], end_s: float) -> float:
    """Integral of a step function given as (time, value from then on), up to ``end_s``."""
    total = 0.0
    for (start_s, value), (stop_s, _) in zip(steps, [*steps[1:], (end_s, 0.0)], strict=True):
        total += value * max(0.0, min(stop_s, end_s) - start_s)
    return total
