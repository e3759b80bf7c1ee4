"""Starts and stops everything in the emulator process: servers, workers, the node loop."""

import asyncio
import contextlib
import gc
import json
import logging
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from modelserve import errors
from modelserve import ports as api
from modelserve.adapters import clock as clocks
from modelserve.adapters import kube, patience, precedence, signals, timescale
from servelab.engine import pool as worker_pool
from servelab.node import emulator, figures
from servelab.node.machines import shards
from servelab.node.pools import registration
from servelab.node.serving import access, inspecting, standing, telemetry
from servelab.node.serving import server as kubelet_server

log = logging.getLogger(__name__)

SHUTDOWN_REAL_S = 1.0
# To the API server: its watches, and the writes at once of pods, events and Leases.
CONNECTIONS = 60
PORT_FILE = "kubelet-port"
# Objects until the youngest are looked through, and how often until the older ones are too.
GC_THRESHOLDS = (20_000, 20, 50)


@contextlib.contextmanager
def _temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="servelab-emulator-") as name:
        yield Path(name)


@dataclass(frozen=True, slots=True)
class Settings:
    """How the process was called. Listen addresses are (host, port); port 0 takes a free one.

    Engines listen on the kubelet API's host: whoever reaches a node reaches its pods.
    """

    kubeconfig: str | None
    namespace: str
    time_scale: float
    kubelet_listen: tuple[str, int]
    kubelet_files: kubelet_server.Files | None  # None: no kubelet API
    kubelet_self_signed: bool  # make the files, and ask the cluster for its client CA
    kubelet_exec: bool  # whether exec, attach, run and port-forward are served
    workers: int
    data_dir: Path | None
    metrics_listen: tuple[str, int]
    node_address_type: str = "InternalIP"  # as what nodes tell the kubelet API's host
    shard: str = ""  # name among emulators that share the nodes; empty for the only one
    # Where keys are kept that it makes, if there is no data directory.
    temporary: Callable[[], contextlib.AbstractContextManager[Path]] = _temporary


async def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises ModelServeError, and what a loop died of."""
    if not precedence.take():
        log.debug("may not go before other processes: phases may be late where they are many")
    stop = asyncio.Event()
    signals.listen(stop)
    await signals.unless_stopped(_serve(settings), stop)
    log.info("stopped")


async def _serve(settings: Settings) -> None:
    files = settings.kubelet_files
    context = None if files is None else kubelet_server.server_context(files)
    clock, numbers = clocks.SystemClock(settings.time_scale), figures.Figures()
    async with contextlib.AsyncExitStack() as stack:
        host = settings.kubelet_listen[0]
        kubelet_socket = stack.enter_context(_bound_again(settings))
        metrics_socket = stack.enter_context(_bound(settings.metrics_listen))
        told = standing.Standing(numbers)
        await stack.enter_async_context(_site(told.app, metrics_socket, None))
        cluster = await kube.KubeCluster.connect(settings.kubeconfig, connections=CONNECTIONS)
        await stack.enter_async_context(cluster)
        await patience.until(
            lambda: timescale.check(cluster, settings.namespace, settings.time_scale), clock
        )
        if settings.kubelet_self_signed:
            # With what signs, which takes 10 MB.
            from servelab.node.serving import selfsigned

            directory = settings.data_dir or stack.enter_context(settings.temporary())
            own = await selfsigned.files(cluster, host, directory / "pki", clock.wall_s())
            context = kubelet_server.server_context(own)
        kubelet = registration.Kubelet(host, _port(kubelet_socket), settings.node_address_type)
        us = shards.Membership(cluster, clock, settings.shard)
        told.stands_by(us.waits_for)
        started = await stack.enter_async_context(
            _emulating(cluster, clock, settings.workers, kubelet, numbers, us)
        )
        inspector = inspecting.Inspector(started)
        if context is None:
            log.warning("no kubelet API: kubectl logs will not work for pods on emulated nodes")
        else:
            options = kubelet_server.Options(
                access.Access(cluster, clock.real_s), settings.kubelet_exec
            )
            api = kubelet_server.KubeletServer(inspector, options)
            await stack.enter_async_context(_site(api.app, kubelet_socket, context))
        told.plays(started.count, lambda: _exported(started, inspector), us.doubt)
        ports = {"kubeletPort": kubelet.port, "metricsPort": _port(metrics_socket)}
        _rest_garbage_collection()
        print(json.dumps({"ready": True, **ports}), flush=True)  # noqa: T201 - tells the starter
        await started.run()


@contextlib.asynccontextmanager
async def _emulating(
    cluster: api.Cluster,
    clock: api.Clock,
    workers: int,
    kubelet: registration.Kubelet,
    numbers: figures.Figures,
    us: shards.Membership,
) -> AsyncIterator[emulator.Emulator]:
    """The emulator with its engine workers. Raises SetUpError, ClusterError."""
    holder: list[emulator.Emulator] = []

    def ask(method: Callable[[emulator.Emulator], Callable[..., None]]) -> Callable[..., None]:
        return lambda *arguments: method(holder[0])(*arguments) if holder else None

    engines = worker_pool.WorkerPool(
        workers,
        clock.scale,
        kubelet.host,
        on_log=ask(lambda found: found.engine_logged),
        on_exit=ask(lambda found: found.engine_exited),
    )
    holder.append(emulator.Emulator(cluster, clock, engines, kubelet, numbers, us))
    await engines.start()
    try:
        async with holder[0]:
            yield holder[0]
    finally:
        await engines.stop()


def _rest_garbage_collection() -> None:
    """What was loaded so far stays: looking through it again would stop everything for a while."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


async def _exported(started: emulator.Emulator, inspector: inspecting.Inspector) -> web.Response:
    nodes = started.served_nodes()
    return await telemetry.exported(inspector, [nodes[name] for name in sorted(nodes)])


@contextlib.asynccontextmanager
async def _site(
    app: web.Application, listener: socket.socket, context: ssl.SSLContext | None
) -> AsyncIterator[None]:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_REAL_S)
    await runner.setup()
    try:
        await web.SockSite(runner, listener, ssl_context=context).start()
        yield
    finally:
        await runner.cleanup()


def _bound_again(settings: Settings) -> socket.socket:
    """The kubelet API's socket: on the port it had before, where that is known and free.

    The nodes' status names the port; with the same one, logs work as soon as we serve again.
    """
    host, port = settings.kubelet_listen
    remembered = settings.data_dir / PORT_FILE if settings.data_dir else None
    if port == 0 and remembered is not None and remembered.exists():
        with contextlib.suppress(errors.SetUpError, ValueError):
            return _bound((host, int(remembered.read_text())))
    found = _bound((host, port))
    if remembered is not None:
        try:
            remembered.parent.mkdir(parents=True, exist_ok=True)
            remembered.write_text(str(_port(found)))
        except OSError as error:
            found.close()
            raise errors.SetUpError(
                f"cannot write to the data directory {remembered.parent}: {error.strerror}"
            ) from error
    return found


def _bound(address: tuple[str, int]) -> socket.socket:
    """A bound TCP socket. Raises SetUpError if that is not possible."""
    host, port = address
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        raise errors.SetUpError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; name another address"
        ) from error
    return listener


def _port(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])
