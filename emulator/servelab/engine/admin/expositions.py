"""Metrics text of which the counters are set back, as if the process had begun at that moment."""

from collections.abc import Mapping
from dataclasses import dataclass

_COUNTED = frozenset({"counter", "histogram", "summary"})
_ENDINGS = ("_bucket", "_sum", "_count", "_total")


@dataclass(frozen=True, slots=True)
class Baseline:
    """What counters stood at when they were set back, by series; the Unix time of that."""

    values: Mapping[str, float]
    at_unix_s: float


def baseline(text: str, at_unix_s: float) -> Baseline:
    """The baseline of a text that was scraped at that moment."""
    types = _types(text)
    samples = (line.rpartition(" ") for line in text.split("\n") if _is_sample(line))
    counted = {series: float(value) for series, _, value in samples if _counts(series, types)}
    return Baseline(counted, at_unix_s)


def rebased(text: str, base: Baseline) -> str:
    """The text with counters and histograms counted from the baseline on.

    Times of creation are those of the baseline; gauges stay.
    """
    types = _types(text)
    return "\n".join(
        _rebased(line, base, types) if _is_sample(line) else line for line in text.split("\n")
    )


def _rebased(line: str, base: Baseline, types: Mapping[str, str]) -> str:
    series, _, value = line.rpartition(" ")
    name = series.partition("{")[0]
    if name.endswith("_created") or name == "process_start_time_seconds":
        return f"{series} {base.at_unix_s!r}"
    before = base.values.get(series, 0.0)
    if not before or not _counts(series, types):
        return line
    # A sum of floats may come out a hair below.
    return f"{series} {max(0.0, float(value) - before)!r}"


def _is_sample(line: str) -> bool:
    return bool(line) and not line.startswith("#")


def _types(text: str) -> Mapping[str, str]:
    """The type of each family."""
    words = (line.split(" ") for line in text.split("\n") if line.startswith("# TYPE "))
    return {family: kind for _, _, family, kind, *_ in words}


def _counts(series: str, types: Mapping[str, str]) -> bool:
    """Whether the series belongs to a counter, histogram or summary."""
    name = series.partition("{")[0]
    families = (name, *(name.removesuffix(ending) for ending in _ENDINGS))
    return next((types[each] for each in families if each in types), "") in _COUNTED
