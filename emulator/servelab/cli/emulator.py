"""``servelab emulator``: the process that plays kubelet for the emulated GPU nodes."""

import asyncio
import functools
import logging
import os
import re
import sys
from pathlib import Path

import click

from modelserve.cli import options
from servelab.cluster import scratch
from servelab.node import process
from servelab.node.serving import server as kubelet_server

_SHARD = re.compile("[a-z0-9]([-a-z0-9.]{0,198}[a-z0-9])?")
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(context_settings={"auto_envvar_prefix": "SERVELAB"})
@options.surroundings
@click.option(
    "--kubelet-host",
    default="127.0.0.1",
    show_default=True,
    help="Address of the kubelet API and the engines, as the API server and gateways reach it.",
)
@click.option(
    "--kubelet-port",
    type=click.IntRange(0, 65_535),
    default=0,
    help="Its port; left out: a free one.",
)
@click.option(
    "--node-address-type",
    type=click.Choice(["InternalIP", "ExternalIP"]),
    default="InternalIP",
    show_default=True,
    help="As what nodes tell that address. Networks that route to nodes route to InternalIP.",
)
@click.option("--kubelet-client-ca", type=_FILE, help="Whose client certificates are let in.")
@click.option("--kubelet-cert", type=_FILE, help="Without it, no kubelet API: no kubectl logs.")
@click.option("--kubelet-key", type=_FILE, help="The private key of the certificate.")
@click.option(
    "--kubelet-self-signed",
    is_flag=True,
    help="Instead of these three: make a certificate, and take the client CA from the cluster.",
)
@click.option(
    "--kubelet-exec/--no-kubelet-exec",
    default=True,
    show_default=True,
    help="Serve exec, attach and port-forward, to whoever may create nodes/proxy.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    default=min(4, os.cpu_count() or 1),
    show_default=True,
    help="Processes that mock engines run in.",
)
@click.option(
    "--shard",
    metavar="NAME",
    default="",
    callback=lambda context, option, value: _checked(value),
    help="Share the nodes with the cluster's other emulators; each has a name of its own, which it "
    "keeps over restarts. Without it, one plays all nodes, and any other waits until it has ended.",
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the kubelet API's port is remembered.",
)
@click.option(
    "--metrics-listen",
    type=options.Address(),
    default="127.0.0.1:0",
    show_default=True,
    help="Address of /metrics, /healthz and /readyz.",
)
def emulator(
    kubeconfig: str | None,
    namespace: str,
    time_scale: float,
    kubelet_host: str,
    kubelet_port: int,
    node_address_type: str,
    kubelet_client_ca: Path | None,
    kubelet_cert: Path | None,
    kubelet_key: Path | None,
    kubelet_self_signed: bool,
    kubelet_exec: bool,
    workers: int,
    shard: str,
    data_dir: Path | None,
    metrics_listen: tuple[str, int],
) -> None:
    """Run the GPU node emulator (plays kubelet)."""
    files = _files(kubelet_client_ca, kubelet_cert, kubelet_key)
    if files is not None and kubelet_self_signed:
        raise click.UsageError(
            "--kubelet-self-signed goes without the three files of the kubelet API"
        )
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    settings = process.Settings(
        kubeconfig=kubeconfig,
        namespace=namespace,
        time_scale=time_scale,
        kubelet_listen=(kubelet_host, kubelet_port),
        kubelet_files=files,
        kubelet_self_signed=kubelet_self_signed,
        kubelet_exec=kubelet_exec,
        workers=workers,
        data_dir=data_dir,
        metrics_listen=metrics_listen,
        node_address_type=node_address_type,
        shard=shard,
        temporary=functools.partial(scratch.directory, "servelab-emulator"),
    )
    asyncio.run(process.run(settings))


def _files(
    client_ca: Path | None, certificate: Path | None, key: Path | None
) -> kubelet_server.Files | None:
    if client_ca is None and certificate is None and key is None:
        return None
    if client_ca is None or certificate is None or key is None:
        raise click.UsageError(
            "--kubelet-client-ca, --kubelet-cert and --kubelet-key go together: give all or none"
        )
    return kubelet_server.Files(client_ca, certificate, key)


def _checked(shard: str) -> str:
    """It becomes part of a Lease's name."""
    if shard and not _SHARD.fullmatch(shard):
        raise click.BadParameter(
            f"{shard!r} cannot be part of a Lease's name: use at most 200 lower-case letters, "
            "digits, dashes and dots, a letter or digit first and last"
        )
    return shard
