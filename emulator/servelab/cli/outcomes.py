"""Outcomes of runs as rows of a table, on a terminal and on a page."""

from collections.abc import Sequence

from rich import box, table

from servelab.report import page, plots
from servelab.sim import outcome, running

NAMES = (
    *("policy", "peak", "GPU h", "idle GPU h", "cold starts", "TTFT p50", "p95", "p99"),
    *("held p95", "in SLO", "writes", "refused"),
)


def header(priced: bool) -> Sequence[str]:
    """Names of the columns; a price gives one more."""
    return (*NAMES, "cost") if priced else NAMES


def row(one: outcome.Outcome) -> Sequence[str]:
    """The figures of one policy. Requests whose hold expired count as refused."""
    cells = [one.policy, f"{one.peak_replicas}", f"{one.gpu_hours:.2f}"]
    cells += [f"{one.idle_gpu_hours:.2f}", f"{one.cold_starts}"]
    cells += [_seconds(one.ttft_p50_s), _seconds(one.ttft_p95_s), _seconds(one.ttft_p99_s)]
    cells += [_seconds(one.held_p95_s), _share(one.slo_attainment), f"{one.scale_writes}"]
    cells.append(f"{one.refused + one.expired}")
    return cells if one.cost != one.cost else [*cells, f"{one.cost:.2f}"]


def grid(outcomes: Sequence[outcome.Outcome]) -> table.Table:
    """A row for each policy."""
    shown = table.Table(box=box.SIMPLE_HEAD)
    for number, name in enumerate(header(priced=outcomes[0].cost == outcomes[0].cost)):
        shown.add_column(name, justify="right" if number else "left")
    for one in outcomes:
        shown.add_row(*row(one))
    return shown


def write_page(
    title: str, about: str, compared: Sequence[tuple[running.Run, outcome.Outcome]]
) -> str:
    """Cost against waiting, and each policy's replicas over time."""
    outcomes = [came_to for _, came_to in compared]
    points = [(one.policy, one.gpu_hours, one.ttft_p95_s) for one in outcomes]
    found = [plots.scatter(points, "GPU hours against p95 of TTFT", "GPU h", "s")]
    ready = {run.policy: [_ready(run, each) for each in run.models] for run, _ in compared}
    top = max((value for each in ready.values() for line in each for _, value in line), default=1)
    for number, (run, one) in enumerate(compared):
        for model, line in zip(run.models, ready[run.policy], strict=True):
            name = f"{run.policy}: ready replicas of {model.name}"
            colour = plots.COLOURS[number % len(plots.COLOURS)]
            found.append(plots.steps(line, one.length_s, name, top=top, colour=colour))
    first = outcomes[0]
    length_h = first.length_s / 3600
    said = (
        f"{first.requests} requests in {length_h:.2f} simulated hours, seed {first.seed}.",
        "Simulated with ModelServe: no request was really sent, no GPU really used.",
    )
    names = header(priced=first.cost == first.cost)
    rows = [row(one) for one in outcomes]
    return page.render(title, [*([about] if about else []), *said], names, rows, found)


def _ready(run: running.Run, model: running.ModelRun) -> list[tuple[float, float]]:
    return [(at_s - run.start_s, float(count)) for at_s, count in model.ledger.ready]


def _seconds(value_s: float) -> str:
    return "–" if value_s != value_s else f"{value_s:.2f} s"


def _share(value: float) -> str:
    return "–" if value != value else f"{value:.1%}"
