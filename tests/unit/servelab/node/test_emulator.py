"""The emulator's own loops."""

import asyncio

import pytest

from modelserve import ports, testing
from modelserve.testing import apiserver
from servelab.engine import pool
from servelab.node import emulator, figures
from servelab.node.pools import registration

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
        assert await cluster.get(ports.LEASES, "kube-node-lease", "dgx-0")


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
