"""``servelab demo``: starts a cluster of its own, tells the story, leaves nothing behind."""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from modelserve import errors
from modelserve.adapters import clock as clocks
from modelserve.adapters import kube
from modelserve.cli import options
from servelab.cli import where
from servelab.cluster import local, processes, record, reporting, scratch
from servelab.demo import results, story, table, view

Told = TypeVar("Told")

INTERRUPTED = 130
POLL_REAL_S = 0.5
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command()
@click.option(
    "--time-scale",
    type=click.FloatRange(min=0.1, max=1000),
    default=10.0,
    show_default=True,
    help="Emulated seconds in one real second.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0.1, max=15),
    default=10.0,
    show_default=True,
    help="How much of the trace to send, in emulated minutes.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Draws the prompts' words.")
@options.printed("JSON: the figures as one object.", plain="text")
@click.option("--keep", is_flag=True, help="Leave the cluster running until Ctrl-C.")
def demo(time_scale: float, minutes: float, seed: int, as_json: bool, keep: bool) -> None:
    """From zero to several replicas and back, with real traffic, in under three minutes.

    Starts a local cluster, applies a pool of one 8×H100 node and a model at zero, sends one request
    that wakes it, then minutes of a published trace, then nothing until it is at zero again.
    """
    for number in ENDING:
        signal.signal(number, signal.default_int_handler)
    plan = story.Plan(time_scale, minutes, seed)
    try:
        with scratch.directory("servelab-demo") as directory:
            result = _tell(plan, directory / "cluster", as_json=as_json, keep=keep)
    except KeyboardInterrupt:
        click.echo("interrupted; everything is stopped", err=True)
        sys.exit(INTERRUPTED)
    sys.exit(0 if result.ok else 1)


def _tell(plan: story.Plan, directory: Path, *, as_json: bool, keep: bool) -> results.Result:
    """Start, tell, report, stop."""
    begun_real_s = time.monotonic()
    options = local.Options(name="demo", data_dir=directory, time_scale=plan.time_scale, keep=False)
    # Only the figures go to standard output when a program reads it.
    stream = sys.stderr if as_json else sys.stdout
    with reporting.closing(reporting.for_stream(stream)) as reporter:
        cluster = local.LocalCluster(options, reporter).start()
    try:
        result = asyncio.run(_story(plan, cluster, view.for_stream(stream), begun_real_s))
        click.echo(json.dumps(result.to_json()) if as_json else "\n" + table.render(result))
        if keep:
            _wait_for_interrupt(directory)
    finally:
        _stop(cluster)
    return result


async def _story(
    plan: story.Plan, cluster: local.LocalCluster, shown: view.Lines | view.Panel, begun: float
) -> results.Result:
    clock = clocks.SystemClock(plan.time_scale)
    shown.say(f"the cluster is up after {time.monotonic() - begun:.1f} s")
    try:
        async with await kube.KubeCluster.connect(str(cluster.kubeconfig), clock=clock) as api:
            told = story.Story(plan, api, clock, cluster.urls, shown)
            return await while_all_live(told.run(begun), cluster.deaths)
    finally:
        shown.close()


async def while_all_live(
    work: Coroutine[Any, Any, Told],
    deaths: Callable[[], Sequence[processes.Death]],
    poll_real_s: float = POLL_REAL_S,
) -> Told:
    """What the work comes to. SetUpError once a process ends: it would wait for that in vain."""
    doing = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({doing}, timeout=poll_real_s))[0]:
            if died := deaths():
                raise errors.SetUpError("\n".join(death.sentence() for death in died))
        return doing.result()
    finally:
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)


def _wait_for_interrupt(directory: Path) -> None:
    running = record.read(directory)
    assert running is not None
    click.echo(where.next_steps(running), err=True)
    click.echo("\nCtrl-C stops it.", err=True)
    try:
        signal.pause()
    except KeyboardInterrupt:
        click.echo("stopping", err=True)


def _stop(cluster: local.LocalCluster) -> None:
    """Tell of processes that died, then stop; no second Ctrl-C comes between."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    for death in cluster.deaths():
        click.echo(death.sentence(), err=True)
    cluster.stop()
