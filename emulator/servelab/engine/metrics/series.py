"""Metric series that render fast: line heads are built once, values filled in at each scrape."""

import bisect
from collections.abc import Iterable, Mapping, Sequence

from prometheus_client import utils

Labels = Mapping[str, str]


def label_text(labels: Labels) -> str:
    """Labels in the text format, sorted by name as prometheus_client does."""
    if not labels:
        return ""
    escaped = (
        (name, labels[name].replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n"))
        for name in sorted(labels)
    )
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped) + "}"


def _number(value: float) -> str:
    return "0.0" if value == 0 else str(utils.floatToGoString(value))  # type: ignore[no-untyped-call]


class Family:
    """A gauge or a counter with its series. A counter's name lacks ``_total``."""

    def __init__(
        self, kind: str, name: str, text: str, series: Iterable[Labels], created_unix_s: float
    ) -> None:
        wire = f"{name}_total" if kind == "counter" else name
        every = [label_text(labels) for labels in series]
        self._head = f"# HELP {wire} {text}\n# TYPE {wire} {kind}\n"
        self._lines = [f"{wire}{labels} " for labels in every]
        self.values = [0.0] * len(every)
        self._tail = ""
        if kind == "counter":
            created = _number(created_unix_s)
            head = f"# HELP {name}_created {text}\n# TYPE {name}_created gauge\n"
            self._tail = head + "".join(f"{name}_created{labels} {created}\n" for labels in every)

    def add(self, amount: float, index: int = 0) -> None:
        """Count up."""
        self.values[index] += amount

    def set(self, value: float, index: int = 0) -> None:
        """Put a gauge to a value."""
        self.values[index] = value

    def render(self) -> str:
        """The text."""
        pairs = zip(self._lines, self.values, strict=True)
        return (
            self._head + "".join(f"{line}{_number(value)}\n" for line, value in pairs) + self._tail
        )


class Histogram:
    """One histogram series."""

    def __init__(
        self, name: str, text: str, labels: Labels, bounds: Sequence[float], created_unix_s: float
    ) -> None:
        plain = label_text(labels)
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self.sum = 0.0
        self._head = f"# HELP {name} {text}\n# TYPE {name} histogram\n"
        marks = [*(_number(bound) for bound in self._bounds), "+Inf"]
        self._lines = [f"{name}_bucket{label_text({**labels, 'le': mark})} " for mark in marks]
        self._count_line = f"{name}_count{plain} "
        self._sum_line = f"{name}_sum{plain} "
        self._tail = (
            f"# HELP {name}_created {text}\n# TYPE {name}_created gauge\n"
            f"{name}_created{plain} {_number(created_unix_s)}\n"
        )

    @property
    def count(self) -> int:
        """Observations so far."""
        return sum(self._counts)

    def observe(self, value: float, times: int = 1) -> None:
        """Add a value, as often as it was seen."""
        self._counts[bisect.bisect_left(self._bounds, value)] += times
        self.sum += value * times

    def render(self) -> str:
        """The text, with cumulative buckets."""
        parts = [self._head]
        total = 0
        for line, count in zip(self._lines, self._counts, strict=True):
            total += count
            parts.append(f"{line}{_number(total)}\n")
        parts.append(f"{self._count_line}{_number(total)}\n{self._sum_line}{_number(self.sum)}\n")
        parts.append(self._tail)
        return "".join(parts)


def one_two_five(limit: float) -> list[float]:
    """1, 2, 5, 10, 20, 50 … up to the limit."""
    bounds: list[float] = []
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power > limit:
                return bounds
            bounds.append(float(factor * power))
        power *= 10
