"""What ``promtool check metrics`` finds fault with, in its words.

The rules are those of promlint (github.com/prometheus/client_golang v1.25, Apache-2.0); they are
advice on names. Real engines break many: a name is kept as the engine has it.
"""

import re
from collections.abc import Iterator

from prometheus_client.parser import text_string_to_metric_families

from servelab.engine.checks import exposition

_CAMEL = re.compile("[a-z][A-Z]")
_BASES = {
    **{unit: unit for unit in ("amperes", "bytes", "celsius", "grams", "joules", "kelvin")},
    **{unit: unit for unit in ("meters", "metres", "seconds", "volts")},
    **dict.fromkeys(("minutes", "hours", "days", "weeks"), "seconds"),
    "kelvins": "kelvin",
    "fahrenheit": "celsius",
    "rankine": "celsius",
    "bits": "bytes",
    **dict.fromkeys(("inches", "yards", "miles"), "meters"),
    "calories": "joules",
    "pounds": "grams",
    "ounces": "grams",
}
_PREFIXES = (
    *("pico", "nano", "micro", "milli", "centi", "deci", "deca", "hecto", "kilo", "kibi"),
    *("mega", "mebi", "giga", "gibi", "tera", "tebi", "peta", "pebi"),
)
_ABBREVIATED = ("s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d")


def problems(text: str) -> list[str]:
    """All faults as ``name text``, sorted. Raises ValueError where the text is no exposition."""
    for _ in text_string_to_metric_families(text):
        pass
    helped = set(re.findall(r"^# HELP (\S+)", text, re.MULTILINE))
    kinds = exposition.types(text)
    labels: dict[str, list[dict[str, str]]] = {}
    for name, found in exposition.series(text):
        if kinds.get(name) == "histogram":
            found.pop("le", None)
        labels.setdefault(name, []).append(found)
    # A family without series is not looked at.
    return sorted(
        f"{name} {fault}"
        for name in labels
        for fault in _faults(name, kinds.get(name, "untyped"), labels[name], name in helped)
    )


def _faults(name: str, kind: str, series: list[dict[str, str]], helped: bool) -> Iterator[str]:
    if not helped:
        yield "no help text"
    yield from _ending_faults(name, kind)
    yield from _word_faults(name, kind)
    for labels in series:
        if kind != "histogram" and "le" in labels:
            yield 'non-histogram metrics should not have "le" label'
        if any(_CAMEL.search(label) for label in labels):
            yield "label names should be written in 'snake_case' not 'camelCase'"


def _ending_faults(name: str, kind: str) -> Iterator[str]:
    total = name.endswith("_total")
    if kind == "counter" and not total:
        yield 'counter metrics should have "_total" suffix'
    if kind not in ("counter", "untyped") and total:
        yield 'non-counter metrics should not have "_total" suffix'
    if kind in ("counter", "gauge"):
        for ending in ("_count", "_sum"):
            if name.endswith(ending):
                what = f'should not have "{ending}" suffix'
                yield f"non-histogram and non-summary metrics {what}"
    if kind != "histogram" and name.endswith("_bucket"):
        yield 'non-histogram metrics should not have "_bucket" suffix'


def _word_faults(name: str, kind: str) -> Iterator[str]:
    words = name.lower().split("_")
    unit = next((found for word in name.split("_") if (found := _unit(word))), None)
    if unit is not None and unit[0] != unit[1]:
        yield f'use base unit "{unit[1]}" instead of "{unit[0]}"'
    if kind in words[1:] and kind != "untyped":
        yield f"metric name should not include type '{kind}'"
    if ":" in name:
        yield "metric names should not contain ':'"
    if _CAMEL.search(name):
        yield "metric names should be written in 'snake_case' not 'camelCase'"
    for _ in (word for word in _ABBREVIATED if word in words[1:]):
        yield "metric names should not contain abbreviated units"


def _unit(word: str) -> tuple[str, str] | None:
    if word in _BASES:
        return word, _BASES[word]
    for prefix in _PREFIXES:
        if word.startswith(prefix) and word.removeprefix(prefix) in _BASES:
            return word, _BASES[word.removeprefix(prefix)]
    return None
