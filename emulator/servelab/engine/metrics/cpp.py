"""Metric families as prometheus-cpp 1.0 writes them for Triton.

Labels are in the order of the alphabet, numbers have up to 16 digits, a family without series is
left out, and a histogram's count and sum stand before its buckets.
"""

import bisect
from collections.abc import Mapping, Sequence

Labels = Mapping[str, str]


def number(value: float) -> str:
    """As a C++ stream of that precision writes it."""
    return f"{value:.16g}"


def label_text(labels: Labels, *more: tuple[str, str]) -> str:
    """Labels by name; ``more`` after them."""
    pairs = [*sorted(labels.items()), *more]
    return "{" + ",".join(f'{name}="{value}"' for name, value in pairs) + "}" if pairs else ""


class Family:
    """A counter or a gauge with its series."""

    def __init__(self, kind: str, name: str, text: str, series: Sequence[Labels] = ({},)) -> None:
        self._head = f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
        self._lines = [f"{name}{label_text(labels)} " for labels in series]
        self.values = [0.0] * len(self._lines)

    def add(self, amount: float, index: int = 0) -> None:
        """Count up."""
        self.values[index] += amount

    def set(self, value: float, index: int = 0) -> None:
        """Put a gauge to a value."""
        self.values[index] = value

    def render(self) -> str:
        """The text."""
        pairs = zip(self._lines, self.values, strict=True)
        return self._head + "".join(f"{line}{number(value)}\n" for line, value in pairs)


class Histogram:
    """A histogram of one series."""

    def __init__(self, name: str, text: str, labels: Labels, bounds: Sequence[float]) -> None:
        self._name = name
        self._head = f"# HELP {name} {text}\n# TYPE {name} histogram\n"
        self._labels = labels
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Add a value."""
        self._counts[bisect.bisect_left(self._bounds, value)] += 1
        self._sum += value

    def render(self) -> str:
        """The text, with cumulative buckets."""
        name, plain = self._name, label_text(self._labels)
        parts = [self._head, f"{name}_count{plain} {sum(self._counts)}\n"]
        parts.append(f"{name}_sum{plain} {number(self._sum)}\n")
        total = 0
        marks = [*map(number, self._bounds), "+Inf"]
        for mark, count in zip(marks, self._counts, strict=True):
            total += count
            parts.append(f"{name}_bucket{label_text(self._labels, ('le', mark))} {total}\n")
        return "".join(parts)
