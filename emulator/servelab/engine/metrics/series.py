"""Metric series that render fast: line heads are built once, values filled in at each scrape."""

import bisect
import functools
from collections.abc import Iterable, Mapping, Sequence

from prometheus_client import utils

Labels = Mapping[str, str]

FRESH_VALUES = 4096
KEPT = 1024


def label_text(labels: Labels) -> str:
    """Labels in the text format, sorted by name as prometheus_client does."""
    return _text(tuple(sorted(labels.items())))


# Engines of one model have the same heads of lines: most of what an engine's start takes.
@functools.lru_cache(maxsize=KEPT)
def _text(labels: tuple[tuple[str, str], ...]) -> str:
    if not labels:
        return ""
    escaped = (
        (name, value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n"))
        for name, value in labels
    )
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped) + "}"


@functools.lru_cache(maxsize=KEPT)
def _buckets(
    name: str, labels: tuple[tuple[str, str], ...], bounds: tuple[float, ...]
) -> tuple[str, ...]:
    """What the lines of a histogram's buckets begin with."""
    marks = (*(_number(bound) for bound in bounds), "+Inf")
    return tuple(f"{name}_bucket{label_text({**dict(labels), 'le': mark})} " for mark in marks)


def _number(value: float) -> str:
    return "0.0" if value == 0 else str(utils.floatToGoString(value))  # type: ignore[no-untyped-call]


class Family:
    """A gauge or a counter with its series. A counter's name lacks ``_total``.

    Without a time of creation it tells none.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        text: str,
        series: Iterable[Labels],
        created_unix_s: float | None = None,
    ) -> None:
        self.name = name
        wire = f"{name}_total" if kind == "counter" else name
        every = [label_text(labels) for labels in series]
        self._head = f"# HELP {wire} {text}\n# TYPE {wire} {kind}\n"
        self._lines = [f"{wire}{labels} " for labels in every]
        self.values = [0.0] * len(every)
        self._tail = ""
        if kind == "counter" and created_unix_s is not None:
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
    """One histogram series. Without a time of creation it tells none."""

    def __init__(
        self,
        name: str,
        text: str,
        labels: Labels,
        bounds: Sequence[float],
        created_unix_s: float | None = None,
    ) -> None:
        self.name = name
        plain = label_text(labels)
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._fresh: list[float] = []  # values that no bucket has yet
        self.sum = 0.0
        self._head = f"# HELP {name} {text}\n# TYPE {name} histogram\n"
        self._lines = _buckets(name, tuple(labels.items()), self._bounds)
        self._count_line = f"{name}_count{plain} "
        self._sum_line = f"{name}_sum{plain} "
        self._tail = ""
        if created_unix_s is not None:
            head = f"# HELP {name}_created {text}\n# TYPE {name}_created gauge\n"
            self._tail = f"{head}{name}_created{plain} {_number(created_unix_s)}\n"

    @property
    def count(self) -> int:
        """Observations so far."""
        self._sort()
        return sum(self._counts)

    def observe(self, value: float, times: int = 1) -> None:
        """Add a value, as often as it was seen."""
        if times == 1:
            self._fresh.append(value)
            self.sum += value
            if len(self._fresh) >= FRESH_VALUES:
                self._sort()
        else:
            self._counts[bisect.bisect_left(self._bounds, value)] += times
            self.sum += value * times

    def observe_all(self, values: Sequence[float]) -> None:
        """Add values that were seen once each."""
        self._fresh.extend(values)
        self.sum += sum(values)
        if len(self._fresh) >= FRESH_VALUES:
            self._sort()

    def _sort(self) -> None:
        """Put fresh values into their buckets: together, that costs a tenth of one by one."""
        fresh = self._fresh
        fresh.sort()
        before = 0
        for place, bound in enumerate(self._bounds):
            upto = bisect.bisect_right(fresh, bound, before)
            self._counts[place] += upto - before
            before = upto
        self._counts[-1] += len(fresh) - before
        fresh.clear()

    def render(self) -> str:
        """The text, with cumulative buckets."""
        self._sort()
        parts = [self._head]
        total = 0
        for line, count in zip(self._lines, self._counts, strict=True):
            total += count
            parts.append(f"{line}{_number(total)}\n")
        parts.append(f"{self._count_line}{_number(total)}\n{self._sum_line}{_number(self.sum)}\n")
        parts.append(self._tail)
        return "".join(parts)


class Cell:
    """One series of a gauge or a counter that comes up when it is first used."""

    __slots__ = ("_line", "value")

    def __init__(self, line: str) -> None:
        self._line = line
        self.value = 0.0

    def add(self, amount: float) -> None:
        """Count up."""
        self.value += amount

    def set(self, value: float) -> None:
        """Put a gauge to a value."""
        self.value = value

    def render(self) -> str:
        """Its line."""
        return f"{self._line}{_number(self.value)}\n"


class Buckets:
    """One series of a histogram that comes up when it is first used."""

    __slots__ = ("_bounds", "_counts", "_ends", "_lines", "sum")

    def __init__(self, name: str, labels: Labels, bounds: Sequence[float]) -> None:
        plain = label_text(labels)
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self.sum = 0.0
        self._lines = _buckets(name, tuple(labels.items()), self._bounds)
        self._ends = f"{name}_sum{plain} ", f"{name}_count{plain} "

    def observe(self, value: float, times: int = 1) -> None:
        """Add a value, as often as it was seen."""
        self._counts[bisect.bisect_left(self._bounds, value)] += times
        self.sum += value * times

    def render(self) -> str:
        """Sum, cumulative buckets, count."""
        parts = [f"{self._ends[0]}{_number(self.sum)}\n"]
        total = 0
        for line, count in zip(self._lines, self._counts, strict=True):
            total += count
            parts.append(f"{line}{_number(total)}\n")
        parts.append(f"{self._ends[1]}{_number(total)}\n")
        return "".join(parts)


class Shared:
    """A gauge or a counter of a server of several processes, as prometheus_client writes it.

    A series is there once it is used, and tells no time of creation. The name is the whole one.
    """

    def __init__(self, kind: str, name: str, text: str, labels: Labels) -> None:
        self._name, self._labels = name, labels
        self._head = f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
        self._cells: dict[tuple[tuple[str, str], ...], Cell] = {}

    def at(self, **labels: str) -> Cell:
        """The series with these labels besides its own."""
        key = tuple(labels.items())
        cell = self._cells.get(key)
        if cell is None:
            cell = Cell(f"{self._name}{label_text({**self._labels, **labels})} ")
            self._cells[key] = cell
        return cell

    def render(self) -> str:
        """The text; none without a series."""
        if not self._cells:
            return ""
        return self._head + "".join(cell.render() for cell in self._cells.values())


class SharedHistogram:
    """The same of a histogram."""

    def __init__(self, name: str, text: str, labels: Labels, bounds: Sequence[float]) -> None:
        self._name, self._labels, self._bounds = name, labels, tuple(bounds)
        self._head = f"# HELP {name} {text}\n# TYPE {name} histogram\n"
        self._series: dict[tuple[tuple[str, str], ...], Buckets] = {}

    def at(self, **labels: str) -> Buckets:
        """The series with these labels besides its own."""
        key = tuple(labels.items())
        buckets = self._series.get(key)
        if buckets is None:
            buckets = Buckets(self._name, {**self._labels, **labels}, self._bounds)
            self._series[key] = buckets
        return buckets

    def render(self) -> str:
        """The text; none without a series."""
        if not self._series:
            return ""
        return self._head + "".join(each.render() for each in self._series.values())


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
