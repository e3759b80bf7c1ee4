"""``servelab sweep``: a scenario over and over, with other fields each time."""

import dataclasses
import functools
import itertools
import json
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from rich import box, table

from modelserve import errors
from modelserve.cli import options
from servelab.cli import bars, completing, outcomes, scenarios, sweep_fronts
from servelab.report import paper
from servelab.sim import running
from servelab.sweep import (
    families,
    fronts,
    journal,
    plan,
    pool,
    results,
    settings,
    summary,
    surroundings,
    sweeping,
)

OUT = paper.sheet()

Figures = Sequence[sweeping.Row]
Work = Callable[[sweeping.Memory], Figures]


@click.command()
@scenarios.SCENARIO
@click.option(
    "--set",
    "fields",
    multiple=True,
    metavar="FIELD=A,B,…",
    help="Values of a field: models.NAME.spec.scaling.minReplicas, or in short "
    "scaling.minReplicas if there is one model. Repeatable: all combinations are run.",
)
@click.option(
    "--policies",
    shell_complete=completing.POLICIES,
    metavar="A,B,…",
    help=f"Of {', '.join(running.policies())}.  [default: committed; with --fronts all]",
)
@click.option(
    "--fronts",
    "as_fronts",
    is_flag=True,
    help="Each policy over a small grid of its users' own settings: the front that each can reach, "
    "and who reaches what the first policy cannot.",
)
@click.option(
    "--floors",
    metavar="N,M,…",
    help="With --fronts: fewest replicas that each is run with, and the fixed counts.  "
    f"[default: {','.join(map(str, families.FLOORS))}]",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 10_000),
    default=1,
    show_default=True,
    help="Draws of each combination, from the scenario's seed on.",
)
@click.option("--workers", type=click.IntRange(1, 1024), help="Processes.  [default: one a core]")
@click.option(
    "--dask",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[ADDRESS]",
    help="Run on a Dask cluster; without ADDRESS on one of this machine.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write every run there: FILE.csv or FILE.parquet. FILE.journal is there while it lasts.",
)
@click.option("--resume", is_flag=True, help="Go on where a sweep into the same --out was ended.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --fronts: also write a page with the fronts drawn; it needs no network.",
)
@options.printed()
def sweep(
    scenario: str,
    fields: Sequence[str],
    policies: str | None,
    as_fronts: bool,
    floors: str | None,
    seeds: int,
    workers: int | None,
    dask: str | None,
    out: Path | None,
    resume: bool,
    html: Path | None,
    as_json: bool,
) -> None:
    """Run SCENARIO with every combination of the fields and print the Pareto front.

    On the front are those that no other beats in both cost and p95 of the time to the first token.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    _check_files(out, resume, html, as_fronts)
    if floors is not None and not as_fronts:
        raise errors.InputError("--floors are those of fronts: add --fronts")
    found = scenarios.Found(scenario)
    given = [settings.parse(each, found.document.content) for each in fields]
    if as_fronts:
        grids = _grids(found, given, policies, floors, seeds)
    else:
        names = outcomes.policies("committed" if policies is None else policies)
        grids = [("", plan.points(found.document, given, names, seeds))]
    points = [point for _, grid in grids for point in grid]
    if not any("traffic" in each.place for each in given):
        found.check_traces()
    digest = surroundings.digest((point.content for point in points), found.lines)
    count = workers or pool.cores()
    run = functools.partial(pool.local, workers=count)
    if dask is not None:
        run = functools.partial(pool.dask, address=dask, workers=count)

    def work(memory: sweeping.Memory) -> Figures:
        with bars.Bar() as bar:
            tell = functools.partial(bar.count, "sweep", total=len(points))
            return sweeping.sweep(points, found.lines, digest, memory, run, tell)

    figures = work(sweeping.Forgetful()) if out is None else _kept(out, resume, points, work)
    setups = sweeping.setups(points, figures, seeds)
    if not as_fronts:
        _show(found.name, setups, len(points), out, as_json)
        return
    reached = iter(setups)
    of_each = [(name, list(itertools.islice(reached, len(grid) // seeds))) for name, grid in grids]
    compared = sweep_fronts.Compared(
        found.name, len(points), len(setups), seeds, fronts.of(of_each, (running.ORACLE,))
    )
    if html is not None:
        page = sweep_fronts.write_page(compared, found.scenario.description)
        results.replace(html, page.encode())
    if as_json:
        click.echo(json.dumps(compared.to_json()))
    else:
        sweep_fronts.show(compared)


def _check_files(out: Path | None, resume: bool, html: Path | None, as_fronts: bool) -> None:
    """Raises InputError for files that could not be written, or that nothing is written to."""
    if resume and out is None:
        raise errors.InputError("--resume goes on with a file: name it with --out")
    if html is not None and not as_fronts:
        raise errors.InputError("--html draws fronts: add --fronts")
    if out is not None:
        results.check(out)
    if html is not None:
        results.check_place(html)


def _grids(
    found: scenarios.Found,
    given: Sequence[settings.Setting],
    policies: str | None,
    floors: str | None,
    seeds: int,
) -> list[tuple[str, Sequence[plan.Point]]]:
    """The points of each policy; a field that is set is the same for all that do not turn it."""
    document = found.document
    for each in given:
        if len(each.values) > 1:
            raise errors.InputError(
                f"--set {each.name}: give one value with --fronts, since fronts of other scenarios "
                "are other fronts"
            )
        content = settings.applied(document.content, each.place, each.values[0])
        document = dataclasses.replace(document, content=content)
    if policies is None:
        names = families.names(found.scenario)
    else:
        names = outcomes.policies(policies, also=(families.FIXED,))
    counts = families.FLOORS if floors is None else _counts(floors)
    grids = [(name, families.points(document, name, counts, seeds)) for name in names]
    if not any(points for _, points in grids):
        raise errors.InputError(
            f"--floors {floors}: no fixed count is among them; give one of 1 to maxReplicas"
        )
    return grids


def _counts(floors: str) -> list[int]:
    words = [each.strip() for each in floors.split(",")]
    if not all(each.isdecimal() for each in words):
        raise errors.InputError(f"--floors {floors}: give numbers of replicas, for instance 0,2,4")
    return sorted(set(map(int, words)))


def _kept(out: Path, resume: bool, points: Sequence[plan.Point], work: Work) -> Figures:
    """Run with a journal beside the file, and write the file at the end."""
    path = out.with_name(f"{out.name}.journal")
    with journal.Journal(path, resume=resume) as kept:
        try:
            figures = work(kept)
        except KeyboardInterrupt:
            click.echo(f"{len(kept.done)} points are in {path}: go on with --resume", err=True)
            raise
        results.write(out, sweeping.rows(points, figures))
        kept.remove()
    return figures


def _show(
    name: str, setups: Sequence[summary.Setup], runs: int, out: Path | None, as_json: bool
) -> None:
    front = summary.front(setups)
    if as_json:
        document = {
            "scenario": name,
            "runs": runs,
            "combinations": len(setups),
            "out": None if out is None else str(out),
            "front": [each.to_json() for each in front],
        }
        click.echo(json.dumps(document))
        return
    written = "" if out is None else f", all of them in {out}"
    many = "combination" if len(setups) == 1 else "combinations"
    times = "run" if runs == 1 else "runs"
    OUT.print(f"{name}: {runs} {times} of {len(setups)} {many}{written}")
    OUT.print("No other beats these in both cost and p95 of TTFT:" if front else "None served 95 %")
    if front:
        paper.rows(_grid(front))


def _grid(front: Sequence[summary.Setup]) -> table.Table:
    shown = table.Table(box=box.SIMPLE_HEAD)
    shown.add_column("policy")
    for name in front[0].values:
        shown.add_column(name, justify="right")
    for name in ("GPU h", "cost", "TTFT p95", "in SLO", "served"):
        shown.add_column(name, justify="right")
    for each in front:
        values = ["–" if value is None else str(value) for value in each.values.values()]
        cost = "–" if each.cost != each.cost else f"{each.cost:.2f}"
        figures = [f"{each.gpu_hours:.2f}", cost, outcomes.seconds(each.ttft_p95_s)]
        figures += [outcomes.share(each.slo_attainment), outcomes.share(each.served)]
        shown.add_row(each.policy, *values, *figures)
    return shown
