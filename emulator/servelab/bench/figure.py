"""One measured number, and the shape in which all benches report theirs. Pure."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from servelab.report import figures

# How a new page begins.
HEAD = "# Benchmarks\n\nWritten by `servelab bench all --write`; run it to renew."


@dataclass(frozen=True, slots=True)
class Figure:
    """``value`` in ``unit``; ``goal`` None where none was set; ``samples`` behind the value.

    Of several ``runs`` it is the median, and ``extremes`` are the lowest and the highest.
    """

    name: str
    value: float
    unit: str
    better: Literal["lower", "higher"] = "lower"
    goal: float | None = None
    samples: int = 1
    runs: int = 1
    extremes: tuple[float, float] | None = None

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None without one."""
        if self.goal is None:
            return None
        return self.value <= self.goal if self.better == "lower" else self.value >= self.goal

    def to_json(self) -> dict[str, Any]:
        """One entry of the report."""
        told = {
            "name": self.name,
            "value": _told(self.value),
            "unit": self.unit,
            "better": self.better,
            "goal": self.goal,
            "samples": self.samples,
        }
        if self.extremes is not None:
            lowest, highest = map(_told, self.extremes)
            told |= {"runs": self.runs, "lowest": lowest, "highest": highest}
        return told


@dataclass(frozen=True, slots=True)
class Report:
    """What one bench found, where."""

    bench: str
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    figures: Sequence[Figure]

    def to_json(self) -> dict[str, Any]:
        """The whole document."""
        return {
            "bench": self.bench,
            "machine": dict(self.machine),
            "versions": dict(self.versions),
            "figures": [one.to_json() for one in self.figures],
        }


def quantile(
    name: str, values: Sequence[float], q: float, unit: str, goal: float | None = None
) -> Figure:
    """A percentile of samples as a figure; lower is better."""
    return Figure(name, figures.percentile(values, q), unit, "lower", goal, len(values))


def median(runs: Sequence[Figure]) -> Figure:
    """Of one figure's runs the one in the middle; of two in the middle the worse."""
    ordered = sorted(runs, key=lambda each: each.value, reverse=runs[0].better == "lower")
    middle = ordered[(len(runs) - 1) // 2]
    if len(runs) == 1:
        return middle
    lowest, highest = sorted((ordered[0].value, ordered[-1].value))
    return dataclasses.replace(middle, runs=len(runs), extremes=(lowest, highest))


def _told(value: float) -> float | None:
    """As JSON has it."""
    return None if value != value else float(f"{value:.6g}")


def shown(value: float, unit: str) -> str:
    """A value for people."""
    if value != value:
        return "no samples"
    if unit == "s" and 0 < value < 1e-3:
        return f"{value * 1e6:.1f} µs"
    if unit == "s":
        return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"
    if unit == "bytes":
        return f"{value / 1e6:.1f} MB"
    if unit == "share":
        return f"{value * 100:.1f} %"
    return f"{value:.4g} {unit}"


def as_text(report: Report) -> str:
    """A table for a terminal."""
    rows = [f"{'':<36}{'measured':>14}{'goal':>14}{'samples':>10}"]
    rows += [_row(one) for one in report.figures]
    return "\n".join([f"bench {report.bench} on {_place(report)}", *rows])


def as_markdown(reports: Sequence[Report], date: str, page: str = "") -> str:
    """A page for the documentation: ``page`` with these benches' sections new, all else kept."""
    head, *parts = re.split(r"^(?=## )", page or HEAD, flags=re.MULTILINE)
    sections = {part.splitlines()[0]: part for part in parts}
    sections |= {f"## {report.bench}": _section(report, date) for report in reports}
    return "\n\n".join(text.rstrip() for text in (head, *sections.values())) + "\n"


def _section(report: Report, date: str) -> str:
    lines = [f"## {report.bench}", "", f"{date}, {_place(report)}.", ""]
    lines += ["| figure | measured | goal | samples |", "|---|---|---|---|"]
    lines += [
        f"| {one.name} | {_measured(one)} | {_goal(one)} | {one.samples} |"
        for one in report.figures
    ]
    return "\n".join(lines)


def _row(one: Figure) -> str:
    missed = "  missed" if one.met is False else ""
    measured = shown(one.value, one.unit)
    return f"{one.name:<36}{measured:>14}{_goal(one):>14}{one.samples:>10}{missed}{_between(one)}"


def _measured(one: Figure) -> str:
    return shown(one.value, one.unit) + _between(one)


def _between(one: Figure) -> str:
    if one.extremes is None:
        return ""
    lowest, highest = (shown(value, one.unit) for value in one.extremes)
    return f" ({lowest} to {highest} in {one.runs} runs)"


def _goal(one: Figure) -> str:
    return (
        "-"
        if one.goal is None
        else f"{'<' if one.better == 'lower' else '>'} " + shown(one.goal, one.unit)
    )


def _place(report: Report) -> str:
    machine, versions = report.machine, report.versions
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']:g} GiB memory; {named}"
    )
