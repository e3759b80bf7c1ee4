"""The loops that keep nodes, on a manual clock."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from modelserve import ports, testing
from servelab.engine import pool
from servelab.node import emulator, figures
from servelab.node.pools import registration

SPEC = {"gpu": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8}


class Stage:
    """An emulator beside an API server in memory."""

    def __init__(self) -> None:
        self.cluster, self.clock = testing.MemoryCluster(), testing.ManualClock()
        kubelet = registration.Kubelet("127.0.0.1", 1)
        engines = pool.WorkerPool(1, 1.0)
        self.emulator = emulator.Emulator(
            self.cluster, self.clock, engines, kubelet, figures.Figures()
        )

    async def begin(self, **spec: Any) -> None:
        body = {"metadata": {"name": "dgx"}, "spec": {**SPEC, **spec}}
        await self.cluster.create(ports.GPUPOOLS, None, body)
        await self.clock.advance(2)

    async def node(self) -> Any:
        return await self.cluster.get(ports.NODES, None, "dgx-0")


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    found = Stage()
    async with found.emulator:
        yield found


async def test_unused_images_go_when_the_disk_is_full(stage: Stage) -> None:
    await stage.begin(disk="60G")
    store = stage.emulator.served_nodes()["dgx-0"].host.images
    for tag in ("v1", "v2", "v3"):
        store.add(f"vllm/vllm-openai:{tag}", 8_900_000_000)
    await stage.clock.advance(300)
    await stage.clock.advance(2)
    listed = [entry["names"][1] for entry in (await stage.node())["status"]["images"]]
    assert listed == ["docker.io/vllm/vllm-openai:v2", "docker.io/vllm/vllm-openai:v3"]


async def test_an_elastic_pool_waits_for_the_time_that_its_node_takes(stage: Stage) -> None:
    rules = {"min": 0, "max": 1, "bootSeconds": 90, "deviceSeconds": 20}
    await stage.begin(nodes=rules, taints=[])
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    body = {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "resources": limits}]},
    }
    await stage.cluster.create(ports.PODS, "default", body)
    found = {"status": {"conditions": [unschedulable]}}
    await stage.cluster.patch(ports.PODS, "default", "p", found, subresource="status")
    for seconds in (1, 60):
        await stage.clock.advance(seconds)
    assert (await stage.cluster.list(ports.NODES))[0] == []
    await stage.clock.advance(15)
    assert "nvidia.com/gpu" not in (await stage.node())["status"]["allocatable"]
    await stage.clock.advance(20)
    assert (await stage.node())["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    events = [event["reason"] for event in (await stage.cluster.list(ports.EVENTS))[0]]
    assert "TriggeredScaleUp" in events
