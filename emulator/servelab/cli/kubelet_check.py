"""``servelab kubelet-check``: pods on an emulated node against recordings of a real kubelet."""

import asyncio
import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich import console as rich_console
from rich import table as rich_table

from modelserve import errors
from modelserve.cli import options
from servelab.cli import where
from servelab.cluster import local, record, reporting, scratch, workloads
from servelab.node.checks import checking, comparing, recording

SHOWN_DIFFERENCES = 40
SHOWN_CHARACTERS = 400


@click.command("kubelet-check")
@click.argument("file", type=click.Path(path_type=Path))
@options.printed(plain="text")
@click.option("--only", multiple=True, help="Only this scenario; may be given several times.")
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="A cluster with our emulator. Left out: the local one, or one of its own.",
)
@where.name_option
@where.data_dir_option
def kubelet_check(
    file: Path,
    as_json: bool,
    only: Sequence[str],
    kubeconfig: Path | None,
    name: str,
    data_dir: Path | None,
) -> None:
    """Create the recorded pods of FILE on an emulated node, all side by side, and compare.

    Compared are facts in status and their order, times, events and logs. Runs in real time: in the
    local cluster if one runs at time scale 1, else in one that is started for it and stopped.

    Exit status: 0 when all are equal, 1 when some are not, 2 when FILE cannot be used.
    """
    try:
        scenarios = _chosen(file, comparing.read(file), only)
        with _cluster(kubeconfig, name, data_dir) as found:
            report = asyncio.run(checking.check(scenarios, found, _tell))
    except errors.InputError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        click.echo(json.dumps(report.to_json()))
    else:
        _print(report)
    sys.exit(0 if report.equal == report.scenarios else 1)


def _chosen(
    file: Path, scenarios: Sequence[recording.Scenario], only: Sequence[str]
) -> Sequence[recording.Scenario]:
    known = [scenario.scenario for scenario in scenarios]
    for each in only:
        if each not in known:
            raise errors.InputError(f"{file} has no scenario {each!r}; it has {', '.join(known)}")
    return [scenario for scenario in scenarios if not only or scenario.scenario in only]


@contextlib.contextmanager
def _cluster(kubeconfig: Path | None, name: str, data_dir: Path | None) -> Iterator[str]:
    """The kubeconfig of the cluster to use; one of our own lasts as long as this context."""
    if kubeconfig is not None:
        yield str(kubeconfig)
        return
    running = record.read(where.directory(name, data_dir))
    usable = running is not None and running.alive() and running.ready
    if running is not None and usable:
        if running.time_scale == 1 and workloads.EMULATOR in running.children:
            yield running.kubeconfig
            return
        _tell("the local cluster does not run in real time with an emulator: starting another one")
    with scratch.directory("servelab-kubelet-check") as directory:
        options = local.Options(
            name="kubelet-check",
            data_dir=directory / "cluster",
            processes=(workloads.EMULATOR,),
            keep=False,
        )
        reporter = reporting.for_stream()
        with reporting.closing(reporter), local.LocalCluster(options, reporter) as cluster:
            yield str(cluster.kubeconfig)


def _tell(sentence: str) -> None:
    click.echo(sentence, err=True)


def _print(report: checking.Report) -> None:
    click.echo(f"{report.equal} of {report.scenarios} scenarios are equal")
    if not report.differences:
        return
    table = rich_table.Table(box=None)
    for heading in ("SCENARIO", "WHERE", "REAL", "EMULATED"):
        table.add_column(heading, overflow="fold")
    for each in report.differences[:SHOWN_DIFFERENCES]:
        sides = (json.dumps(value)[:SHOWN_CHARACTERS] for value in (each.real, each.emulated))
        table.add_row(each.scenario, each.where, *sides)
    rich_console.Console(file=sys.stdout, markup=False).print(table)
    more = len(report.differences) - SHOWN_DIFFERENCES
    if more > 0:
        click.echo(f"and {more} more differences")
