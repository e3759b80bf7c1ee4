"""What ``sweep --fronts`` shows: every policy's front, and who is ahead of the first one's."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich import box, table

from servelab.cli import outcomes
from servelab.report import page, paper, plots
from servelab.sweep import fronts

OUT = paper.sheet()


@dataclass(frozen=True, slots=True)
class Compared:
    """The fronts of a scenario, the judged policy's first."""

    scenario: str
    runs: int
    settings: int
    seeds: int
    drawn: Sequence[fronts.Front]

    @property
    def judged(self) -> fronts.Front:
        """The front that the others are held against."""
        return self.drawn[0]

    @property
    def crossed_by(self) -> list[str]:
        """Policies with a setting that is ahead of it."""
        return [each.policy for each in self.drawn[1:] if each.crosses]

    @property
    def verdict(self) -> str:
        """Whether another front crosses it, in a sentence."""
        name = self.judged.policy
        if not self.judged.points:
            return f"At no setting does {name} serve 95 % within ten minutes"
        if not self.crossed_by:
            return f"No other policy crosses the front of {name}"
        return f"The front of {name} is crossed by {', '.join(self.crossed_by)}"

    @property
    def title(self) -> str:
        """What was run."""
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        settings = "1 setting" if self.settings == 1 else f"{self.settings} settings"
        return f"{self.scenario}: {runs} of {settings}, {self.seeds} each"

    def to_json(self) -> dict[str, Any]:
        """All of it as data."""
        return {
            "scenario": self.scenario,
            "runs": self.runs,
            "settings": self.settings,
            "seeds": self.seeds,
            "judged": self.judged.policy,
            "crossed_by": self.crossed_by,
            "fronts": [each.to_json() for each in self.drawn],
        }


def show(compared: Compared) -> None:
    """A row for each point of each front."""
    name = compared.judged.policy
    OUT.print(compared.title)
    OUT.print(f"{compared.verdict}; what it pays more for each other's wait, or one within 10 %:")
    shown = table.Table(box=box.SIMPLE_HEAD)
    for number, column in enumerate(_header(name)):
        shown.add_column(column, justify="right" if 0 < number < len(_header(name)) - 1 else "left")
    for cells in _rows(compared):
        shown.add_row(*cells)
    paper.rows(shown)


def write_page(compared: Compared, description: str) -> str:
    """The plot, and the same table."""
    name = compared.judged.policy
    said = (
        f"{compared.title}: each policy over a small grid of the settings that its users turn, on "
        "the same requests, lengths and cold starts; of each, what no other setting of it beats.",
        f"{compared.verdict}. A point is ahead of that front if no setting of {name} costs as "
        "little and waits as long, within 10 %. An oracle knows the future: a bound, no policy.",
        "Simulated with ModelServe: no request was really sent, no GPU really used.",
    )
    priced = any(not math.isnan(e.reached.cost) for front in compared.drawn for e in front.points)
    what, unit = ("Cost", "") if priced else ("GPU hours", "GPU h")
    drawn = [
        (front.policy, [(e.reached.price, e.reached.wait_s, _settings(e)) for e in front.points])
        for front in compared.drawn
    ]
    svg = plots.fronts(drawn, f"{what} against p95 of the time to the first token", unit, "s")
    figure = page.Figure(svg, "Lower and further left is better; rest on a point for its settings.")
    paragraphs = [*([description] if description else []), *said]
    return page.render(compared.scenario, paragraphs, _header(name), _rows(compared), [figure])


def _header(judged: str) -> Sequence[str]:
    return ("policy", "GPU h", "cost", "TTFT p95", "in SLO", f"{judged} pays", "settings")


def _rows(compared: Compared) -> list[list[str]]:
    return [
        _row(front, point, judged=front is compared.judged)
        for front in compared.drawn
        for point in front.points
    ]


def _row(front: fronts.Front, point: fronts.Point, *, judged: bool) -> list[str]:
    one = point.reached
    cost = "–" if math.isnan(one.cost) else f"{one.cost:.2f}"
    name = f"{front.policy} (bound)" if front.bound else one.policy
    pays = "" if judged else _pays(point, counts=not front.bound)
    figures = [f"{one.gpu_hours:.2f}", cost, outcomes.seconds(one.ttft_p95_s)]
    return [name, *figures, outcomes.share(one.slo_attainment), pays, _settings(point)]


def _pays(point: fronts.Point, *, counts: bool) -> str:
    more = "never so short" if math.isinf(point.more) else f"{point.more:+.1%}"
    return f"ahead: {more}" if point.ahead and counts else more


def _settings(point: fronts.Point) -> str:
    said = [
        f"{name.removeprefix('scaling.')} {value}"
        for name, value in point.reached.values.items()
        if value is not None
    ]
    return ", ".join(said) or "as it is"
