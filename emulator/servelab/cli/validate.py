"""``servelab validate``: the simulated engine against measurements of real ones."""

import json
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from rich import box, table

from modelserve.cli import options
from servelab.cli import bars
from servelab.report import paper
from servelab.validation import points as measured
from servelab.validation import scoring

OUT = paper.sheet()


@click.command()
@click.option(
    "--points",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file of measured points; left out: those that ship with ModelServe.",
)
@options.printed()
def validate(points: Path | None, as_json: bool) -> None:
    """Run measured points through the simulated engine and print how far off it is.

    A point that cannot be run is listed with the reason. Errors are relative; a bias is the median
    error with its sign. It reports; it does not fail because an error is large.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    report = _run(measured.read(points))
    if as_json:
        click.echo(json.dumps(report.to_json()))
    else:
        _show(report)


def _run(points: Sequence[measured.Point]) -> scoring.Report:
    """Tells on stderr how far it is."""
    with bars.Bar() as bar:
        return scoring.run(points, lambda done: bar.count("simulating", done, len(points)))


def _show(report: scoring.Report) -> None:
    skipped = len(report.skipped)
    OUT.print(f"{report.points} points: {len(report.main)} simulated, {skipped} skipped")
    metrics = {score.point.kind: score.metric for score in report.main}
    kinds = report.groups(scoring.kind_of)
    _table("kind, metric", {f"{kind}, {metrics[kind]}": kinds[kind] for kind in kinds})
    _table("GPU", report.groups(scoring.gpu_of))
    _table("engine", report.groups(scoring.engine_of))
    _table("model", report.groups(scoring.model_of))
    _table("besides", report.besides())
    _show_worst(report.worst())
    _show_skipped(report.skipped)


def _table(title: str, groups: Mapping[str, scoring.Summary]) -> None:
    if not groups:
        return
    shown = _grid(title, "points", "median error", "p90", "bias", "within 25 %")
    for name, one in groups.items():
        shown.add_row(
            name,
            str(one.n),
            f"{one.median_abs_error:.1%}",
            f"{one.p90_abs_error:.1%}",
            f"{one.bias:+.1%}",
            f"{one.within_25_percent:.0%}",
        )
    paper.rows(shown)


def _show_worst(scores: Sequence[scoring.Score]) -> None:
    shown = _grid("worst points", "metric", "measured", "simulated", "error")
    for one in scores:
        values = (f"{one.measured:.4g}", f"{one.simulated:.4g}", f"{one.error:+.0%}")
        shown.add_row(one.point.id, one.metric, *values)
    if scores:
        paper.rows(shown)


def _show_skipped(skipped: Sequence[scoring.Skipped]) -> None:
    by_reason: dict[str, list[str]] = {}
    for one in skipped:
        by_reason.setdefault(one.why, []).append(one.id)
    shown = table.Table("skipped", "why", box=box.SIMPLE_HEAD)
    for why, ids in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        shown.add_row(ids[0] if len(ids) == 1 else f"{ids[0]} and {len(ids) - 1} more", why)
    if skipped:
        paper.rows(shown)


def _grid(first: str, *others: str) -> table.Table:
    shown = table.Table(first, box=box.SIMPLE_HEAD)
    for name in others:
        shown.add_column(name, justify="left" if name == "metric" else "right")
    return shown
