"""Averages over a window of time buckets, as Knative's autoscaler keeps them.

Source: knative.dev/serving v0.51.0, pkg/autoscaler/aggregation (bucketing.go, max/window.go). Sums
run on as they do there, bucket by bucket, so that they round alike.
"""

import math
from dataclasses import dataclass

# An average is rounded to six digits (bucketing.go, precision).
_SCALE = 1_000_000


@dataclass(frozen=True, slots=True)
class Window:
    """A ring of buckets of ``granularity_s`` seconds that make up ``window_s``.

    ``first`` and ``last`` are numbers of the buckets written first and last, None before that.
    """

    window_s: float
    granularity_s: float
    ring: tuple[float, ...]
    total: float = 0.0
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Maximum:
    """The greatest value of a window, by buckets of ``granularity_s`` seconds.

    ``entries`` are (bucket, value): those that may yet be the greatest, oldest and greatest first.
    """

    buckets: int
    granularity_s: float
    entries: tuple[tuple[int, int], ...] = ()


def window(window_s: float, granularity_s: float) -> Window:
    """An empty window."""
    return Window(window_s, granularity_s, (0.0,) * math.ceil(window_s / granularity_s))


def record(past: Window, value: float, now_s: float) -> Window:
    """Add a value to the bucket of ``now_s``; one older than the window is left out."""
    bucket, size = _bucket(now_s, past.granularity_s), len(past.ring)
    ring, total, first, last = list(past.ring), past.total, past.first, past.last
    if last is None or first is None:
        first = last = bucket
    elif bucket > last:
        if (bucket - last) * past.granularity_s >= past.window_s:
            first, ring, total = bucket, [0.0] * size, 0.0
        else:
            for passed in range(last + 1, bucket + 1):
                total -= ring[passed % size]
                ring[passed % size] = 0.0
        last = bucket
    elif (last - bucket) * past.granularity_s >= past.window_s:
        return past
    else:
        first = min(first, bucket)
    ring[bucket % size] += value
    return Window(past.window_s, past.granularity_s, tuple(ring), total + value, first, last)


def empty(past: Window, now_s: float) -> bool:
    """Whether nothing was recorded for longer than the window."""
    if past.last is None:
        return True
    return (_bucket(now_s, past.granularity_s) - past.last) * past.granularity_s > past.window_s


def average(past: Window, now_s: float) -> float:
    """The average bucket; over those since the first write until the window is full.

    Buckets after the last write, up to ``now_s``, shorten the window and do not count as 0.
    """
    if past.last is None or past.first is None:
        return 0.0
    late, size = _bucket(now_s, past.granularity_s) - past.last, len(past.ring)
    written = past.last - past.first + 1
    if late <= 0:
        return _rounded(past.total / min(written, size))
    if late * past.granularity_s >= past.window_s:
        return 0.0
    total = past.total
    for passed in range(past.last + 1, past.last + late + 1):
        total -= past.ring[passed % size]
    return _rounded(total / min(written, size - late))


def maximum(window_s: float, granularity_s: float) -> Maximum:
    """An empty window of which the greatest counts."""
    return Maximum(math.ceil(window_s / granularity_s), granularity_s)


def record_maximum(past: Maximum, value: int, now_s: float) -> Maximum:
    """Add a value; of several in one bucket the greatest stays."""
    bucket = _bucket(now_s, past.granularity_s)
    kept = [entry for entry in past.entries if entry[1] > value]
    kept = [entry for entry in kept if bucket - entry[0] < past.buckets]
    if kept and kept[-1][0] == bucket:
        value = max(value, kept.pop()[1])
    return Maximum(past.buckets, past.granularity_s, (*kept, (bucket, value)))


def greatest(past: Maximum) -> int:
    """The greatest value as of the last one recorded; 0 if there was none."""
    return past.entries[0][1] if past.entries else 0


def _bucket(now_s: float, granularity_s: float) -> int:
    return math.floor(now_s / granularity_s)


def _rounded(value: float) -> float:
    """Round half away from zero, as Go does."""
    scaled = value * _SCALE
    whole = math.trunc(scaled)
    if abs(scaled - whole) >= 0.5:
        whole += 1 if scaled > 0 else -1
    return whole / _SCALE
