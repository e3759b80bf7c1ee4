"""Commands about a local cluster that runs: status, down, logs, restart."""

import os
import signal
import time
from pathlib import Path

import click
from rich import table as rich_table

from modelserve import errors
from modelserve.cli import options
from servelab.cli import completing, where
from servelab.cluster import home, lastwords, orders, record, releases, workloads
from servelab.report import paper

DOWN_TIMEOUT_REAL_S = 30.0
POLL_REAL_S = 0.1


@click.command()
@where.name_option
@where.data_dir_option
@options.printed()
def status(name: str, data_dir: Path | None, as_json: bool) -> None:
    """Show what runs, and where. Exit code 1 if nothing does."""
    running = _require(name, data_dir)
    if as_json:
        click.echo(where.as_json(where.describe(running)))
        return
    ended = where.ended(running)
    state = "not whole" if ended else "ready" if running.ready else "starting"
    click.echo(f"{running.name}: {state}, Kubernetes {running.kubernetes}")
    table = rich_table.Table(box=None)
    for heading in ("PROCESS", "STATE", "PID", "RESTARTS"):
        table.add_column(heading)
    for process, found in running.children.items():
        word = "running" if found.alive() else "ended"
        table.add_row(process, word, str(found.pid), str(running.restarts.get(process, 0)))
    paper.rows(table)
    for process in ended:
        log = where.command(f"logs {process}", running.name, data_dir)
        click.echo(f"\n{process} has ended and is started again after a pause; why: {log}")
    click.echo(f"\n{where.next_steps(running)}")


@click.command()
@where.name_option
@where.data_dir_option
def down(name: str, data_dir: Path | None) -> None:
    """Stop the local cluster and remove what it need not keep."""
    directory = where.directory(name, data_dir)
    running = record.read(directory)
    if running is None:
        click.echo(f"no local cluster runs in {directory}{_ended(directory)}")
        lastwords.forget(directory)
        return
    if running.alive():
        os.kill(running.supervisor.pid, signal.SIGTERM)
        _wait_for_end(running)
        click.echo(f"stopped the local cluster {running.name!r}")
        return
    left = home.Home(running.name, directory, keep=running.keep)
    left.open()
    left.close()
    click.echo(f"cleared what the crashed local cluster {running.name!r} had left")


def _processes() -> list[str]:
    return [*workloads.ALL, *releases.Component]


@click.command()
@click.argument("process", shell_complete=completing.among(_processes))
@where.name_option
@where.data_dir_option
@click.option("-f", "--follow", is_flag=True, help="Go on printing what is added.")
@click.option("--tail", type=click.IntRange(min=0), help="Only the last so many lines.")
def logs(process: str, name: str, data_dir: Path | None, follow: bool, tail: int | None) -> None:
    """Print the log of PROCESS: operator, gateway, emulator, kube-apiserver, etcd, …"""
    directory = where.directory(name, data_dir) / "logs"
    known = sorted(path.stem for path in directory.glob("*.log"))
    if process not in known:
        missing = f"no log of {process!r} in {directory}"
        if not known:
            raise errors.SetUpError(f"{missing}; no local cluster has run there")
        raise errors.InputError(f"{missing}; there are: {', '.join(known)}")
    with (directory / f"{process}.log").open(errors="replace") as file:
        lines = file.readlines()
        for line in lines if tail is None else lines[len(lines) - min(tail, len(lines)) :]:
            click.echo(line, nl=False)
        while follow:
            added = file.read()
            click.echo(added, nl=False)
            if not added:
                time.sleep(POLL_REAL_S)


@click.command()
@click.argument("process", type=click.Choice(workloads.ALL))
@where.name_option
@where.data_dir_option
@click.option("--kill", is_flag=True, help="With SIGKILL, as a crash would end it.")
def restart(process: str, name: str, data_dir: Path | None, kill: bool) -> None:
    """Stop PROCESS (operator, gateway or emulator) and start it again."""
    _require(name, data_dir)
    orders.restart(where.directory(name, data_dir), process, kill=kill)
    click.echo(f"restarted {process}")


def _require(name: str, data_dir: Path | None) -> record.Record:
    directory = where.directory(name, data_dir)
    running = record.read(directory)
    if running is None:
        start = f"start one with {where.command('up', name, data_dir)}"
        raise errors.SetUpError(f"no local cluster runs in {directory}: {start}{_ended(directory)}")
    if not running.alive():
        raise errors.SetUpError(
            f"the local cluster in {directory} crashed; to clear what it left: "
            + where.command("down", name, data_dir)
        )
    return running


def _ended(directory: Path) -> str:
    """Why the one before ended, if nobody stopped it."""
    why = lastwords.read(directory)
    return f"\nThe last one ended {why}" if why else ""


def _wait_for_end(running: record.Record) -> None:
    deadline_real_s = time.monotonic() + DOWN_TIMEOUT_REAL_S
    while running.alive():
        if time.monotonic() > deadline_real_s:
            raise errors.SetUpError(
                f"process {running.supervisor.pid} did not stop in {DOWN_TIMEOUT_REAL_S:.0f} s: "
                "kill it, then `servelab down` clears what it left"
            )
        time.sleep(POLL_REAL_S)
