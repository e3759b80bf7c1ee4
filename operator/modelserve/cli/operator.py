"""``modelserve operator``: reconciles ModelServes; one is active by Lease."""

import asyncio
import json
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from modelserve import handlers, operating
from modelserve.adapters import clock as clocks
from modelserve.adapters import instances, kube, signals
from modelserve.cli import options
from modelserve.settings import Settings


@click.command(context_settings=options.ENVIRONMENT)
@options.process
@click.option("--metrics-listen", type=options.Address(), default="0.0.0.0:8082", show_default=True)
@click.option("--workers", type=click.IntRange(1, 256), default=8, show_default=True)
@click.option("--identity", default="", help="Left out: host name, process id, a word.")
def operator(
    kubeconfig: str | None,
    namespace: str,
    time_scale: float,
    token_file: Path,
    metrics_listen: tuple[str, int],
    workers: int,
    identity: str,
) -> None:
    """Run the operator. Several may run: one holds the Lease and acts, the others wait."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    handlers.quiet()
    settings = Settings(
        token=options.read_token(token_file),
        kubeconfig=kubeconfig,
        namespace=namespace,
        time_scale=time_scale,
        metrics_listen=metrics_listen,
        workers=workers,
        identity=identity or instances.this_process(),
    )
    asyncio.run(_run(settings))


async def _run(settings: Settings) -> None:
    """Until SIGTERM or SIGINT."""
    clock, stop = clocks.SystemClock(settings.time_scale), asyncio.Event()

    def announce(facts: Mapping[str, Any]) -> None:
        # Kopf has put its own handlers there: it would end before our tasks do, and wait for them.
        signals.listen(stop)
        # One line for whoever started us.
        click.echo(json.dumps({"ready": True, **facts}))
        sys.stdout.flush()

    signals.listen(stop)
    async with await kube.KubeCluster.connect(settings.kubeconfig, clock=clock) as cluster:
        operation = operating.run(cluster, clock, settings, announce, lambda: signals.listen(stop))
        await signals.unless_stopped(operation, stop)
