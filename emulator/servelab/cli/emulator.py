"""``servelab emulator``: the process that plays kubelet for the emulated GPU nodes."""

import asyncio
import logging
import os
import sys
from pathlib import Path

import click

from modelserve import errors
from modelserve.api import names
from servelab.node import process

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class _BadInput(click.ClickException):
    """One sentence, and the exit code of a wrong call."""

    exit_code = 2


def _address(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, int]:
    host, colon, port = value.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:
        raise click.BadParameter(f"{value!r} is no address; write HOST:PORT, such as 127.0.0.1:0")
    return host.strip("[]"), int(port)


def _scale(context: click.Context, parameter: click.Parameter, value: float) -> float:
    if not 0 < value <= 100_000:
        raise click.BadParameter(f"{value:g} is out of range; it must be over 0, at most 100000")
    return value


@click.command(context_settings={"auto_envvar_prefix": "SERVELAB"})
@click.option(
    "--kubeconfig",
    envvar="SERVELAB_KUBECONFIG",
    help="Credentials; left out: those of the pod this runs in.",
)
@click.option(
    "--namespace",
    envvar="SERVELAB_NAMESPACE",
    default=names.SYSTEM_NAMESPACE,
    show_default=True,
    help="Where our own processes live.",
)
@click.option(
    "--time-scale",
    envvar="SERVELAB_TIME_SCALE",
    type=float,
    default=1.0,
    show_default=True,
    callback=_scale,
    help="Emulated seconds per real second.",
)
@click.option(
    "--kubelet-host",
    envvar="SERVELAB_KUBELET_HOST",
    default="127.0.0.1",
    show_default=True,
    help="Address of the kubelet API, as the API server reaches it.",
)
@click.option(
    "--kubelet-port",
    envvar="SERVELAB_KUBELET_PORT",
    type=click.IntRange(0, 65_535),
    default=0,
    help="Its port; left out: a free one.",
)
@click.option("--kubelet-client-ca", envvar="SERVELAB_KUBELET_CLIENT_CA", type=_FILE, required=True)
@click.option("--kubelet-cert", envvar="SERVELAB_KUBELET_CERT", type=_FILE, required=True)
@click.option("--kubelet-key", envvar="SERVELAB_KUBELET_KEY", type=_FILE, required=True)
@click.option(
    "--workers",
    envvar="SERVELAB_WORKERS",
    type=click.IntRange(1, 256),
    default=min(4, os.cpu_count() or 1),
    show_default=True,
    help="Processes that mock engines run in.",
)
@click.option(
    "--data-dir",
    envvar="SERVELAB_DATA_DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the kubelet API's port is remembered.",
)
@click.option(
    "--metrics-listen",
    envvar="SERVELAB_METRICS_LISTEN",
    default="127.0.0.1:0",
    show_default=True,
    callback=_address,
    help="Address of /metrics and /healthz.",
)
def emulator(
    kubeconfig: str | None,
    namespace: str,
    time_scale: float,
    kubelet_host: str,
    kubelet_port: int,
    kubelet_client_ca: Path,
    kubelet_cert: Path,
    kubelet_key: Path,
    workers: int,
    data_dir: Path | None,
    metrics_listen: tuple[str, int],
) -> None:
    """Run the GPU node emulator (plays kubelet)."""
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
        kubelet_client_ca=kubelet_client_ca,
        kubelet_cert=kubelet_cert,
        kubelet_key=kubelet_key,
        workers=workers,
        data_dir=data_dir,
        metrics_listen=metrics_listen,
    )
    try:
        asyncio.run(process.run(settings))
    except errors.InputError as error:
        raise _BadInput(str(error)) from error
