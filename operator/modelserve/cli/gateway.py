"""``modelserve gateway``: one OpenAI-compatible address for all models of a cluster."""

import asyncio
import logging
import secrets
import sys
from pathlib import Path

import click

from modelserve.cli import options
from modelserve.gateway import assembly, process, public


@click.command(context_settings=options.ENVIRONMENT)
@options.process
@click.option("--listen", type=options.Address(), default="0.0.0.0:8080", show_default=True)
@click.option(
    "--internal-listen",
    type=options.Address(),
    default="0.0.0.0:8081",
    show_default=True,
    help="For the operator: demand and fences.",
)
@click.option("--advertise-host", default="", help="Where the operator finds the internal port.")
@click.option("--identity", default="", help="Left out: host name and internal port.")
@click.option(
    "--drain-seconds",
    type=click.FloatRange(0),
    default=10.0,
    show_default=True,
    help="Real seconds that requests in flight get at the end.",
)
@click.option(
    "--max-body-bytes",
    type=click.IntRange(1),
    default=public.MAX_BODY_BYTES,
    show_default=True,
    help="Larger request bodies are answered with 413.",
)
def gateway(
    kubeconfig: str | None,
    namespace: str,
    time_scale: float,
    token_file: Path,
    listen: tuple[str, int],
    internal_listen: tuple[str, int],
    advertise_host: str,
    identity: str,
    drain_seconds: float,
    max_body_bytes: int,
) -> None:
    """Run the gateway: one OpenAI-compatible address for all models, at zero or not."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    settings = assembly.Settings(
        token=options.read_token(token_file),
        identity=identity or assembly.default_identity(internal_listen[1]),
        epoch=secrets.token_hex(8),
        namespace=namespace,
        listen=listen,
        internal_listen=internal_listen,
        advertise_host=advertise_host,
        drain_real_s=drain_seconds,
        max_body_bytes=max_body_bytes,
    )
    asyncio.run(process.run(kubeconfig, time_scale, settings, click.echo))
