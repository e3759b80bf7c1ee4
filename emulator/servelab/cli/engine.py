"""``servelab engine``: one mock engine alone, told in the words of ``vllm serve``."""

import asyncio
import json
import logging
import socket
import sys
import time

import click

from modelserve import errors
from modelserve.adapters import signals
from modelserve.adapters.clock import SystemClock
from modelserve.catalog import gpus
from modelserve.cli import options
from modelserve.engines import launch
from servelab.engine import assembly
from servelab.engine.assembly import EngineSpec
from servelab.engine.server import EngineServer
from servelab.engine.surfaces.vllm import logs

LOGGER = logging.getLogger("servelab.engine")
EXAMPLE = "servelab engine meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 32 --port 8000"


@click.command(
    context_settings={"ignore_unknown_options": True, "auto_envvar_prefix": "SERVELAB_ENGINE"}
)
@click.option("--gpu", default="NVIDIA-H100-80GB-HBM3", show_default=True, help="GPU product.")
@options.time_scale
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=8000, show_default=True, help="0: any."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of lengths and jitter.")
@click.option("--drain-seconds", type=click.FloatRange(min=0), default=30.0, show_default=True)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def engine(
    gpu: str,
    time_scale: float,
    host: str,
    port: int,
    seed: int,
    drain_seconds: float,
    args: tuple[str, ...],
) -> None:
    """Run one mock engine that serves at once; ARGS are those of `vllm serve`, the model first.

    Example: servelab engine meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 32
    """
    logging.basicConfig(stream=sys.stderr, format="%(message)s", level=logging.INFO)
    try:
        spec = _spec(args, gpu, seed)
        sock = _bind(host, port)
    except errors.InputError as error:
        raise click.UsageError(str(error)) from error
    except errors.ModelServeError as error:
        raise click.ClickException(str(error)) from error
    asyncio.run(_run(spec, sock, time_scale, drain_seconds))


def _spec(args: tuple[str, ...], gpu_product: str, seed: int) -> EngineSpec:
    words = args[1:] if args[:1] == ("serve",) else args
    if not words or words[0].startswith("-"):
        raise errors.InputError(f"the model's name is missing; for example: {EXAMPLE}")
    gpu = gpus.find(gpu_product)
    container = {"name": "engine", "image": "", "command": ["vllm", "serve", *words]}
    parsed = launch.parse(container, {}, gpu)
    assert parsed is not None
    return assembly.from_launch(parsed, gpu, seed)


def _bind(host: str, port: int) -> socket.socket:
    """A socket that listens; the server takes its connections once it starts."""
    sock: socket.socket | None = None
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family)
        # A port chosen by hand may still be in TIME_WAIT from the run before.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen()
    except OSError as error:
        if sock is not None:
            sock.close()
        reason = error.strerror or str(error)
        raise errors.SetUpError(
            f"cannot listen on {host}:{port}: {reason}; choose another with --port or --host"
        ) from error
    sock.setblocking(False)
    return sock


async def _run(
    spec: EngineSpec, sock: socket.socket, time_scale: float, drain_real_s: float
) -> None:
    server = EngineServer(
        spec,
        SystemClock(time_scale),
        lambda line: LOGGER.info("%s", logs.stamped(line, time.time())),
    )
    stop = asyncio.Event()
    signals.listen(stop)
    await server.start(sock)
    host, port = sock.getsockname()[:2]
    ready = {"ready": True, "model": spec.served_name, "url": f"http://{host}:{port}/v1"}
    click.echo(json.dumps(ready))
    await stop.wait()
    await server.drain(drain_real_s)
