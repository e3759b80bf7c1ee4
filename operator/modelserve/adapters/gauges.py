"""A few gauges out of a Prometheus text, found by name instead of parsing every line. Pure.

vLLM's answer has some 40 kB and a scrape wants three numbers of it, once a second per engine.
"""

import math
import re
from collections.abc import Iterator

from modelserve.decide import demand
from modelserve.engines import types

_BLANKS = b" \t"


def parse_queue(text: bytes, metrics: types.MetricNames) -> tuple[float, float, float] | None:
    """Waiting, running (requests) and KV use (0 to 1); None where the text gives no usable figures.

    Counts are summed over label sets (one per data-parallel rank), KV use is their mean, and 0
    where the engine has none. NaN, infinite, negative and absurd figures make the whole unusable.
    Where an engine exports series from their first use on, those that are missing are 0.
    """
    waiting, running = _values(text, metrics.waiting), _values(text, metrics.running)
    if metrics.from_first_use and (not text.strip() or b"# TYPE " in text):
        waiting, running = waiting or [0.0], running or [0.0]
    if not waiting or not running:
        return None
    counts = sum(waiting), sum(running)
    if not all(map(demand.usable, (*waiting, *running, *counts))):
        return None
    usage = _values(text, metrics.kv_usage) if metrics.kv_usage else []
    mean = sum(usage) / len(usage) if usage else 0.0
    return *counts, mean if 0 <= mean <= 1 else 0.0


def _values(text: bytes, series: types.Series) -> list[float]:
    """Every sample of a series, by its earlier name if there is none; NaN where it is no number."""
    found = _named(text, series.name, series.labels)
    if found or series.before is None:
        return found
    return _named(text, series.before, series.labels)


def _named(text: bytes, name: str, labels: tuple[tuple[str, str], ...]) -> list[float]:
    wanted = [
        re.compile(rb"(?:^|,)\s*" + re.escape(f'{label}="{value}"'.encode()))
        for label, value in labels
    ]
    return [
        _number(value)
        for told, value in _samples(text, name.encode())
        if all(pattern.search(told) for pattern in wanted)
    ]


def _samples(text: bytes, name: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = text.find(name)
    while at != -1:
        end = text.find(b"\n", at)
        end = len(text) if end == -1 else end
        rest = text[at + len(name) : end]
        if (at == 0 or text[at - 1 : at] == b"\n") and rest[:1] in (b"{", b" ", b"\t"):
            # The last brace closes the labels: a value and a time stamp have none.
            labels, brace, tail = rest.lstrip(_BLANKS).rpartition(b"}")
            fields = (tail if brace else rest).split()
            yield labels[1:], fields[0] if fields else b""
        at = text.find(name, end)


def _number(value: bytes) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan
