"""The emulator's own loops."""

import asyncio
import gc
import logging
import weakref
from collections.abc import Callable

import pytest

from modelserve import ports, testing
from modelserve.testing import apiserver
from servelab.engine import pool
from servelab.node import emulator, figures
from servelab.node.machines import heartbeat
from servelab.node.pools import registration

TURNS = 10_000
POOL = {"metadata": {"name": "dgx"}, "spec": {"gpu": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8}}


def broken(call: apiserver.Call) -> None:
    if call.verb == "create" and call.resource == ports.NODES:
        raise RuntimeError("a mistake of ours")


async def test_a_loop_that_dies_ends_the_process_instead_of_leaving_nodes_unkept() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    await cluster.create(ports.GPUPOOLS, None, POOL)
    cluster.before_call = broken
    engines = pool.WorkerPool(1, 1.0)
    kubelet = registration.Kubelet("127.0.0.1", 1)
    started = emulator.Emulator(cluster, clock, engines, kubelet, figures.Figures())
    async with started:
        running = asyncio.ensure_future(started.run())
        await clock.advance(1)
        with pytest.raises(RuntimeError, match="a mistake of ours"):
            await running


async def test_a_pools_nodes_stand_and_beat() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    await cluster.create(ports.GPUPOOLS, None, POOL)
    engines = pool.WorkerPool(1, 1.0)
    kubelet = registration.Kubelet("127.0.0.1", 1)
    async with emulator.Emulator(cluster, clock, engines, kubelet, figures.Figures()):
        await clock.advance(2)
        assert await cluster.get(ports.NODES, None, "dgx-0")
        await clock.advance(heartbeat.FIRST_AFTER_REAL_S + heartbeat.PERIOD_REAL_S)
        assert await cluster.get(ports.LEASES, heartbeat.NAMESPACE, "dgx-0")
        assert await cluster.get(ports.CSI_NODES, None, "dgx-0")


async def test_a_pool_that_goes_takes_its_nodes_and_links_along(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    await cluster.create(ports.GPUPOOLS, None, POOL)
    engines = pool.WorkerPool(1, 1.0)
    kubelet = registration.Kubelet("127.0.0.1", 1)
    async with emulator.Emulator(cluster, clock, engines, kubelet, figures.Figures()):
        await clock.advance(2)
        await cluster.delete(ports.GPUPOOLS, None, "dgx")
        await clock.advance(2)
        assert (await cluster.list(ports.NODES))[0] == []
    assert not caplog.records


async def test_pods_that_are_gone_are_freed_without_the_collector(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # A captured record of what this cluster refuses to write would keep the pod.
    caplog.set_level(logging.CRITICAL, "servelab.node.pods.writer")
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    await cluster.create(ports.GPUPOOLS, None, POOL)
    engines = pool.WorkerPool(1, 1.0)
    kubelet = registration.Kubelet("127.0.0.1", 1)
    spec = {"nodeName": "dgx-0", "containers": [{"name": "c", "image": "nginx:1"}]}
    async with emulator.Emulator(cluster, clock, engines, kubelet, figures.Figures()) as kept:
        await clock.advance(2)
        meta = {"name": "p", "namespace": "default"}
        await cluster.create(ports.PODS, "default", {"metadata": meta, "spec": spec})
        await until(lambda: list(kept.served()) != [])
        await clock.advance(30)
        gc.collect()
        gc.disable()
        left = [weakref.ref(found) for found in kept.served()]
        await cluster.delete(ports.PODS, "default", "p", grace_s=0)
        try:
            await until(lambda: all(found() is None for found in left))
        finally:
            gc.enable()


async def until(met: Callable[[], bool]) -> None:
    """Whoever has something to do gets to it."""
    for _ in range(TURNS):
        if met():
            return
        await asyncio.sleep(0)
    pytest.fail(f"not within {TURNS} turns of the loop")
