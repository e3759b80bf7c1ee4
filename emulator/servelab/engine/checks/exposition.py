"""Holds an exposition against a list of what the real engine exports.

A list has a line for each family: name, type, and, where it has them, ``labels=a,b`` (in the order
in which they are written) and ``buckets=``: bounds, ``geometric(first,ratio,count)`` or
``steps(width,count)``. Lines that begin with ``#`` say where the list is from.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_SERIES = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_TYPE = re.compile(r"^# TYPE (\S+) (\w+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_MADE = re.compile(r"(geometric|steps)\((.*)\)")
_ENDINGS = ("_bucket", "_sum", "_count")


@dataclass(frozen=True, slots=True)
class Family:
    """A metric family: labels without ``le`` and ``quantile``, upper bounds without +Inf."""

    name: str
    kind: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()


def listed(path: Path) -> list[Family]:
    """The families of a list."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [_listed(line) for line in lines if line.strip() and not line.startswith("#")]


def _listed(line: str) -> Family:
    name, kind, *rest = line.split()
    given = dict(part.split("=", 1) for part in rest)
    labels = tuple(given["labels"].split(",")) if "labels" in given else ()
    return Family(name, kind, labels, tuple(_bounds(given.get("buckets", ""))))


def _bounds(text: str) -> list[float]:
    made = _MADE.fullmatch(text)
    if made is None:
        return [float(bound) for bound in text.split(",") if bound]
    numbers = [float(number) for number in made[2].split(",")]
    if made[1] == "steps":
        width, count = numbers
        return [width * step for step in range(1, int(count) + 1)]
    first, ratio, count = numbers
    return [first * ratio**power for power in range(int(count))]


def series(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each sample's family and labels, in the exposition's order."""
    kinds: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            kinds[name] = kind
        elif (match := _SERIES.fullmatch(line)) is not None:
            yield _family(match["name"], kinds), dict(_LABEL.findall(match["labels"] or ""))


def types(text: str) -> dict[str, str]:
    """The families' types by name."""
    return dict(_TYPE.findall(text))


def exported(text: str) -> list[Family]:
    """The families of an exposition, in its order; those without series too."""
    labels: dict[str, tuple[str, ...]] = {}
    bounds: dict[str, dict[float, None]] = {}
    for name, found in series(text):
        mark = found.pop("le", "+Inf")
        found.pop("quantile", None)
        labels.setdefault(name, tuple(found))
        if mark != "+Inf":
            bounds.setdefault(name, {})[float(mark)] = None
    return [
        Family(name, kind, labels.get(name, ()), tuple(bounds.get(name, ())))
        for name, kind in types(text).items()
    ]


def _family(name: str, kinds: dict[str, str]) -> str:
    """The family of a series: a distribution's have endings."""
    for ending in _ENDINGS:
        base = name.removesuffix(ending)
        if base != name and kinds.get(base) in ("histogram", "summary"):
            return base
    return name


def differences(real: Sequence[Family], ours: Sequence[Family]) -> list[str]:
    """What differs, a line each; the families' order does not count."""
    theirs = {family.name: family for family in real}
    found = {family.name: family for family in ours}
    lines = [f"{name} is missing" for name in theirs if name not in found]
    lines += [f"{name} is no metric of the real engine" for name in found if name not in theirs]
    for name in theirs.keys() & found.keys():
        lines += _compared(theirs[name], found[name])
    return sorted(lines)


def _compared(real: Family, ours: Family) -> list[str]:
    lines = []
    if real.kind != ours.kind:
        lines.append(f"{real.name} is a {ours.kind}, not a {real.kind}")
    if real.labels != ours.labels:
        lines.append(f"{real.name} has labels {ours.labels}, not {real.labels}")
    same = len(real.bounds) == len(ours.bounds) and all(
        math.isclose(a, b, rel_tol=1e-9) for a, b in zip(real.bounds, ours.bounds, strict=True)
    )
    if not same:
        lines.append(f"{real.name} has bounds {ours.bounds}, not {real.bounds}")
    return lines
