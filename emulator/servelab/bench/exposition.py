"""Numbers out of the text that ``/metrics`` serves. Pure."""

import math
import re
from collections.abc import Mapping

_LINE = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def total(text: str, name: str, labels: Mapping[str, str] | None = None) -> float:
    """The sum of a metric's series that have these labels."""
    found = 0.0
    for line in text.splitlines():
        if line.startswith(name) and (match := _LINE.match(line)) and match[1] == name:
            known = dict(_LABEL.findall(match[2] or ""))
            if all(known.get(key) == value for key, value in (labels or {}).items()):
                found += float(match[3])
    return found


def buckets(text: str, name: str) -> dict[float, float]:
    """The cumulative counts of a histogram without further labels, by upper bound."""
    found = {}
    for line in text.splitlines():
        if line.startswith(f"{name}_bucket") and (match := _LINE.match(line)):
            bound = dict(_LABEL.findall(match[2] or ""))["le"]
            found[math.inf if bound == "+Inf" else float(bound)] = float(match[3])
    return found


def between(before: Mapping[float, float], after: Mapping[float, float]) -> dict[float, float]:
    """What came to a histogram from one look to the next."""
    return {bound: count - before.get(bound, 0.0) for bound, count in after.items()}


def quantile(found: Mapping[float, float], q: float) -> float:
    """Interpolated within its bucket, as Prometheus does; NaN of an empty histogram."""
    bounds = sorted(found)
    count = found[bounds[-1]] if bounds else 0.0
    if not count:
        return math.nan
    low, below = 0.0, 0.0
    for bound in bounds:
        if found[bound] >= q * count:
            if bound == math.inf:
                return low
            share = (q * count - below) / max(1.0, found[bound] - below)
            return low + (bound - low) * share
        low, below = bound, found[bound]
    return low
