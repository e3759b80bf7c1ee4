"""Outcomes of runs as rows of a table, on a terminal and on a page."""

from collections.abc import Container, Sequence

from rich import box, table

from modelserve import errors
from servelab.report import paper
from servelab.sim import outcome, running, scenario

NAMES = (
    *("policy", "peak", "GPU h", "idle GPU h", "cold starts", "TTFT p50", "p95", "p99"),
    *("held p95", "in SLO", "writes", "refused"),
)


def policies(text: str, also: Container[str] = ()) -> Sequence[str]:
    """Names of policies with commas between them. Raises InputError for one that there is not.

    ``also`` are names that stand for several.
    """
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise errors.InputError("--policies names none: give some, with commas between them")
    for name in names:
        if name not in also:
            running.check_policy(name)
    return names


def header(priced: bool) -> Sequence[str]:
    """Names of the columns; a price gives one more."""
    return (*NAMES, "cost") if priced else NAMES


def row(one: outcome.Outcome) -> Sequence[str]:
    """The figures of one policy. Requests whose hold expired count as refused."""
    cells = [one.policy, f"{one.peak_replicas}", f"{one.gpu_hours:.2f}"]
    cells += [f"{one.idle_gpu_hours:.2f}", f"{one.cold_starts}"]
    cells += [seconds(one.ttft_p50_s), seconds(one.ttft_p95_s), seconds(one.ttft_p99_s)]
    cells += [seconds(one.held_p95_s), share(one.slo_attainment), f"{one.scale_writes}"]
    cells.append(f"{one.refused + one.expired}")
    return cells if one.cost != one.cost else [*cells, f"{one.cost:.2f}"]


def promise(objective: scenario.Objective) -> str:
    """What stands under "in SLO"."""
    tokens_s = objective.tpot_seconds
    each = "" if tokens_s is None else f" and then a token every {tokens_s:g} s or sooner"
    return (
        f"in SLO: the share of all requests, refused ones too, that got a first token within "
        f"{objective.ttft_seconds:g} s{each} (the scenario's objective)"
    )


def grid(outcomes: Sequence[outcome.Outcome], room: int | None = None) -> table.Table:
    """A row for each policy; a column, where only that fits into ``room`` columns of a terminal."""
    lines = [header(priced=outcomes[0].cost == outcomes[0].cost), *map(row, outcomes)]
    across = _table(lines)
    if room is None or paper.columns_of(across) <= room:
        return across
    down = _table(list(zip(*lines, strict=True)))
    return down if paper.columns_of(down) <= room else across


def _table(lines: Sequence[Sequence[str]]) -> table.Table:
    shown = table.Table(box=box.SIMPLE_HEAD)
    for number, name in enumerate(lines[0]):
        shown.add_column(name, justify="right" if number else "left")
    for cells in lines[1:]:
        shown.add_row(*cells)
    return shown


def seconds(value_s: float) -> str:
    """Two digits after the point; a dash for what is not known."""
    return "–" if value_s != value_s else f"{value_s:.2f} s"


def share(value: float) -> str:
    """In per cent; a dash for what is not known."""
    return "–" if value != value else f"{value:.1%}"
