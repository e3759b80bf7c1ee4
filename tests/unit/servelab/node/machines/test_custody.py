"""Several emulators on one API server: each node is played by one of them at any time."""

import asyncio
from typing import Any

from modelserve import errors, ports, testing
from modelserve.api import names
from modelserve.testing import apiserver
from servelab.engine import pool
from servelab.node import emulator, figures
from servelab.node.machines import shards
from servelab.node.pools import registration

POOL = {
    "metadata": {"name": "dgx"},
    "spec": {"gpu": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8, "nodes": 12},
}
NODES = {f"dgx-{number}" for number in range(12)}
LEASES = "kube-node-lease"


class Lab:
    """An API server in memory, and emulators that come and go."""

    def __init__(self) -> None:
        self.cluster, self.clock = testing.MemoryCluster(), testing.ManualClock()
        self.running: dict[str, emulator.Emulator] = {}

    async def start(self, name: str, port: int, cluster: ports.Cluster | None = None) -> None:
        ours = cluster or self.cluster
        us = shards.Shard(ours, self.clock, name)
        found = emulator.Emulator(
            ours,
            self.clock,
            pool.WorkerPool(1, 1.0),
            registration.Kubelet("127.0.0.1", port),
            figures.Figures(),
            us,
        )
        starting = asyncio.create_task(found.__aenter__())
        await self.pass_s(1)
        await starting
        self.running[name] = found

    async def pass_s(self, seconds: float) -> None:
        for _ in range(int(seconds * 2)):
            await self.clock.advance(0.5)

    async def stop(self, name: str) -> None:
        """As at SIGTERM."""
        await self.running.pop(name).__aexit__()

    def nodes(self, name: str) -> set[str]:
        return set(self.running[name].served_nodes())

    async def holders(self) -> dict[str, str]:
        leases, _ = await self.cluster.list(ports.LEASES, LEASES)
        noted = ((each["metadata"], each["metadata"].get("annotations") or {}) for each in leases)
        return {
            meta["name"]: annotations[names.LEASE_HOLDER]
            for meta, annotations in noted
            if names.LEASE_HOLDER in annotations
        }


class Cut:
    """A network that can be cut: an emulator behind it hears and writes nothing."""

    def __init__(self, cluster: testing.MemoryCluster) -> None:
        self._cluster = cluster
        self.cut = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._cluster, name)
        if name == "watch":
            return found

        async def call(*arguments: Any, **options: Any) -> Any:
            if self.cut:
                raise errors.Unavailable("no route to host")
            return await found(*arguments, **options)

        return call


async def stage() -> Lab:
    lab = Lab()
    await lab.cluster.create(ports.GPUPOOLS, None, POOL)
    return lab


async def test_two_emulators_share_the_nodes() -> None:
    lab = await stage()
    await lab.start("a", 1)
    await lab.start("b", 2)
    await lab.pass_s(10)
    first, second = lab.nodes("a"), lab.nodes("b")
    assert (first | second, first & second) == (NODES, set())
    assert first
    assert second
    assert await lab.holders() == {
        **dict.fromkeys(first, "a"),
        **dict.fromkeys(second, "b"),
    }
    await lab.stop("b")
    await lab.stop("a")


async def test_a_node_tells_the_kubelet_api_of_the_emulator_that_plays_it() -> None:
    lab = await stage()
    await lab.start("a", 1)
    await lab.start("b", 2)
    await lab.pass_s(10)
    nodes, _ = await lab.cluster.list(ports.NODES)
    told = {
        node["metadata"]["name"]: node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        for node in nodes
    }
    assert told == {name: 2 if name in lab.nodes("b") else 1 for name in NODES}
    await lab.stop("b")
    await lab.stop("a")


async def test_what_an_emulator_played_that_ends_is_taken_over_at_once() -> None:
    lab = await stage()
    await lab.start("a", 1)
    await lab.start("b", 2)
    await lab.pass_s(10)
    await lab.stop("a")
    await lab.pass_s(6)
    assert lab.nodes("b") == NODES
    await lab.stop("b")


async def test_what_one_played_that_is_cut_off_is_taken_over_when_it_has_stopped_writing() -> None:
    lab = await stage()
    cut = Cut(lab.cluster)
    await lab.start("a", 1, cut)
    await lab.start("b", 2)
    await lab.pass_s(10)
    theirs = lab.nodes("a")
    cut.cut = True
    await lab.pass_s(9)
    assert not lab.nodes("b") & theirs
    await lab.pass_s(16)
    assert lab.nodes("b") == NODES
    # It hears again, and leaves what has been taken; then it gets its share back.
    cut.cut = False
    await lab.pass_s(30)
    assert (lab.nodes("a"), lab.nodes("b")) == (theirs, NODES - theirs)
    await lab.stop("b")
    await lab.stop("a")


async def test_a_node_never_has_two_writers() -> None:
    lab = await stage()
    cut = Cut(lab.cluster)
    await lab.start("a", 1, cut)
    await lab.start("b", 2)
    for moment in range(80):
        cut.cut = 10 <= moment < 50
        await lab.pass_s(1)
        both = lab.nodes("a") & lab.nodes("b")
        writing = [
            name
            for name in both
            if lab.running["a"].may_write(name) and lab.running["b"].may_write(name)
        ]
        assert writing == []
    await lab.stop("b")
    await lab.stop("a")


async def test_an_emulator_that_comes_back_under_its_name_waits_for_nobody() -> None:
    lab = await stage()
    await lab.start("a", 1)
    await lab.pass_s(5)
    dead = lab.running.pop("a")
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await asyncio.sleep(0)
    await lab.start("a", 3)
    await lab.pass_s(3)
    assert lab.nodes("a") == NODES
    assert dead is not lab.running["a"]
    await lab.stop("a")


async def test_a_lease_that_was_changed_by_hand_is_gone_on_with() -> None:
    lab = await stage()
    await lab.start("a", 1)
    await lab.pass_s(5)
    body = {"metadata": {"labels": {"somebody": "wrote"}}}
    await lab.cluster.patch(ports.LEASES, LEASES, "dgx-0", body)
    await lab.pass_s(15)
    assert lab.nodes("a") == NODES
    assert (await lab.holders())["dgx-0"] == "a"
    await lab.stop("a")


async def test_renewals_of_all_nodes_are_spread_over_the_period() -> None:
    lab = await stage()
    await lab.start("a", 1)
    await lab.pass_s(15)
    counts = []
    for _ in range(10):
        before = len(lab.cluster.calls)
        await lab.pass_s(1)
        counts.append(sum(map(is_renewal, lab.cluster.calls[before:])))
    assert max(counts) <= 4
    assert 11 <= sum(counts) <= 13
    await lab.stop("a")


def is_renewal(call: apiserver.Call) -> bool:
    return call.verb == "patch" and call.resource == ports.LEASES and call.name in NODES
