"""Metric families as Rust's ``metrics-exporter-prometheus`` 0.15 writes them.

A series is there from its first use on; a family without description has no HELP; counters are
whole numbers; no number has an exponent; an empty line follows each family. The real one's
families come in no order.
"""

import bisect
import decimal
from collections.abc import Sequence

Labels = tuple[tuple[str, str], ...]

# A distribution without buckets is a summary with these; its window forgets within a minute.
QUANTILES = ("0", "0.5", "0.9", "0.95", "0.99", "0.999", "1")


def number(value: float) -> str:
    """A number as Rust's Display writes it."""
    if value == int(value):
        return str(int(value))
    return format(decimal.Decimal(repr(value)), "f")


def label_text(labels: Labels) -> str:
    """Labels in the order in which they were given."""
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels) + "}"


def _head(name: str, kind: str, text: str) -> str:
    help_line = f"# HELP {name} {text}\n" if text else ""
    return f"{help_line}# TYPE {name} {kind}\n"


class Family:
    """A counter or a gauge."""

    def __init__(self, kind: str, name: str, text: str = "") -> None:
        self._name = name
        self._head = _head(name, kind, text)
        self.series: dict[Labels, float] = {}

    def add(self, amount: float = 1, labels: Labels = ()) -> None:
        """Count up."""
        self.series[labels] = self.series.get(labels, 0) + amount

    def set(self, value: float, labels: Labels = ()) -> None:
        """Put a gauge to a value."""
        self.series[labels] = value

    def render(self) -> str:
        """The text; empty as long as nothing was counted."""
        if not self.series:
            return ""
        lines = (
            f"{self._name}{label_text(labels)} {number(value)}\n"
            for labels, value in self.series.items()
        )
        return self._head + "".join(lines) + "\n"


class Histogram:
    """A distribution with buckets, or, without bounds, a summary."""

    def __init__(self, name: str, bounds: Sequence[float], text: str = "") -> None:
        self._name = name
        self._bounds = tuple(bounds)
        self._head = _head(name, "histogram" if bounds else "summary", text)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    @property
    def total(self) -> float:
        """The sum over all series."""
        return sum(self._sums.values())

    def observe(self, value: float, times: int = 1, labels: Labels = ()) -> None:
        """Add a value, as often as it was seen."""
        counts = self._counts.setdefault(labels, [0] * (len(self._bounds) + 1))
        counts[bisect.bisect_left(self._bounds, value)] += times
        self._sums[labels] = self._sums.get(labels, 0.0) + value * times

    def render(self) -> str:
        """The text; empty as long as nothing was seen."""
        if not self._counts:
            return ""
        parts = [self._head]
        for labels, counts in self._counts.items():
            plain, total = label_text(labels), sum(counts)
            parts += self._buckets(labels, counts) if self._bounds else self._quantiles(labels)
            parts.append(f"{self._name}_sum{plain} {number(self._sums[labels])}\n")
            parts.append(f"{self._name}_count{plain} {total}\n")
        return "".join(parts) + "\n"

    def _buckets(self, labels: Labels, counts: Sequence[int]) -> list[str]:
        marks = [*map(number, self._bounds), "+Inf"]
        lines, total = [], 0
        for mark, count in zip(marks, counts, strict=True):
            total += count
            lines.append(f"{self._name}_bucket{label_text((*labels, ('le', mark)))} {total}\n")
        return lines

    def _quantiles(self, labels: Labels) -> list[str]:
        # Only speculation is told so, and none is done here: all values are 0.
        return [
            f"{self._name}{label_text((*labels, ('quantile', mark)))} 0\n" for mark in QUANTILES
        ]
