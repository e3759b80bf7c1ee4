"""The gateway as a process: connect, serve until a signal, leave in good order."""

import asyncio
import contextlib
import json
import logging
import resource
import sys
from collections.abc import Callable

import prometheus_client

from modelserve import errors, ports
from modelserve.adapters import clock as clocks
from modelserve.adapters import kube, signals, timescale
from modelserve.gateway import assembly

log = logging.getLogger(__name__)

# How long a start waits for an API server that does not answer.
CONNECT_REAL_S = 60.0


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
            checking = _check_time_scale(cluster, clock, settings.namespace, time_scale)
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


async def _check_time_scale(
    cluster: ports.Cluster, clock: ports.Clock, namespace: str, time_scale: float
) -> None:
    end_real_s = clock.real_s() + CONNECT_REAL_S
    while True:
        try:
            return await timescale.check(cluster, namespace, time_scale)
        except errors.Unavailable as error:
            if clock.real_s() >= end_real_s:
                raise
            log.warning("%s; trying again", error)
            await clock.sleep_real(1.0)


def _raise_file_limit() -> None:
    """Every held request is an open connection; the soft limit is often 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
