"""The gateway as a process: connect, serve until a signal, leave in good order."""

import asyncio
import contextlib
import json
import resource
import sys
from collections.abc import Callable

import prometheus_client

from modelserve import ports
from modelserve.adapters import clock as clocks
from modelserve.adapters import kube, patience, signals, timescale
from modelserve.gateway import assembly


async def run(
    kubeconfig: str | None,
    time_scale: float,
    settings: assembly.Settings,
    announce: Callable[[str], None] = print,
) -> None:
    """Until SIGTERM or SIGINT. Raises InputError, SetUpError or ClusterError."""
    _raise_file_limit()
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    clock = clocks.SystemClock(time_scale)
    stop = asyncio.Event()
    signals.listen(stop)
    try:
        async with await kube.KubeCluster.connect(kubeconfig, clock=clock) as cluster:
            checking = patience.until(
                lambda: timescale.check(cluster, settings.namespace, time_scale), clock
            )
            if await signals.unless_stopped(checking, stop):
                await _serve(cluster, clock, settings, stop, announce)
    finally:
        signals.unlisten()


async def _serve(
    cluster: ports.Cluster,
    clock: ports.Clock,
    settings: assembly.Settings,
    stop: asyncio.Event,
    announce: Callable[[str], None],
) -> None:
    gateway = assembly.Gateway(cluster, clock, settings)
    try:
        await gateway.start()
        announcing = asyncio.create_task(_announce(gateway, settings, announce))
        try:
            await signals.unless_stopped(gateway.run(), stop)
        finally:
            announcing.cancel()
    finally:
        await gateway.stop()


async def _announce(
    gateway: assembly.Gateway, settings: assembly.Settings, announce: Callable[[str], None]
) -> None:
    """One line for whoever started us, once requests are answered."""
    await gateway.view.synced.wait()
    urls = {
        "listen": f"http://{assembly.join(*gateway.address)}",
        "internal": f"http://{assembly.join(*gateway.internal_address)}",
    }
    announce(json.dumps({"ready": True, "gateway": settings.identity, **urls}))
    sys.stdout.flush()


def _raise_file_limit() -> None:
    """Every held request is an open connection; the soft limit is often 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
