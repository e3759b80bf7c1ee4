"""An API server in memory, and emulators that come and go; each may be cut off or stand still."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from modelserve import errors, ports, testing
from modelserve.api import names
from servelab.engine import pool
from servelab.node import emulator, figures
from servelab.node.machines import shards
from servelab.node.pools import registration

NODES = 12
LEASES = "kube-node-lease"
POOL = {
    "metadata": {"name": "dgx"},
    "spec": {"gpu": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8, "nodes": NODES},
}


class Line:
    """All that one emulator has of the world, as its cluster and as its clock.

    While ``cut`` it asks and writes in vain; an answer takes ``latency_s``; while it is paused,
    nothing of it runs, and time goes on. ``wrote`` has the times of its writes but for those of its
    own Lease. ``meanwhile`` happens once, while the answer to a list is on its way: of the pods of
    node dgx-0, or the ``nth`` of what ``awaited`` says.
    """

    def __init__(self, lab: "Lab") -> None:
        self._cluster, self._clock = lab.cluster, lab.clock
        self._runs = asyncio.Event()
        self._runs.set()
        self.cut = False
        self.latency_s = 0.0
        self.nth = 1
        self.awaited = {"field_selector": "spec.nodeName=dgx-0"}
        self.wrote: list[float] = []
        self.meanwhile: Callable[[], Awaitable[None]] | None = None
        self.scale = lab.clock.scale
        self.real_s, self.wall_s, self.now_s = lab.clock.real_s, lab.clock.wall_s, lab.clock.now_s

    def pause(self) -> None:
        self._runs.clear()

    def go_on(self) -> None:
        self._runs.set()

    async def sleep_real(self, seconds: float) -> None:
        await self._clock.sleep_real(seconds)
        await self._runs.wait()

    async def watch(self, *arguments: Any, **options: Any) -> AsyncIterator[ports.WatchEvent]:
        async for event in self._cluster.watch(*arguments, **options):
            await self._runs.wait()
            yield event

    async def _act(self) -> None:
        self.nth -= self.meanwhile is not None
        if self.meanwhile is not None and self.nth <= 0:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
            await testing.settle()

    def __getattr__(self, verb: str) -> Any:
        async def call(*arguments: Any, **options: Any) -> Any:
            if self.cut:
                raise errors.Unavailable("no route to host")
            if verb not in ("get", "list") and "servelab-emulator" not in str(arguments[2]):
                self.wrote.append(self._clock.real_s())
            await self._clock.sleep_real(self.latency_s)
            answer = await getattr(self._cluster, verb)(*arguments, **options)
            if verb == "list" and self.awaited.items() <= options.items():
                await self._act()
            return answer

        return call


class Lab:
    """Emulators by the name that a test gives them, which is their shard's where they share."""

    def __init__(self) -> None:
        self.cluster, self.clock = testing.MemoryCluster(), testing.ManualClock()
        self.running: dict[str, emulator.Emulator] = {}
        self.nodes_all = frozenset(f"dgx-{number}" for number in range(NODES))

    def line(self) -> Line:
        return Line(self)

    def begin(
        self, shard: str, port: int, line: Line | None = None
    ) -> "asyncio.Task[emulator.Emulator]":
        """Done once it plays nodes; the port tells it from others of its name."""
        cluster: Any = line or self.cluster
        clock: Any = line or self.clock
        found = emulator.Emulator(
            cluster,
            clock,
            pool.WorkerPool(1, 1.0),
            registration.Kubelet("127.0.0.1", port),
            figures.Figures(),
            shards.Membership(cluster, clock, shard, f"instance-{port}"),
        )
        return asyncio.create_task(found.__aenter__())

    async def start(
        self, name: str, port: int, line: Line | None = None, *, shares: bool = True
    ) -> None:
        starting = self.begin(name if shares else "", port, line)
        await self.pass_s(1)
        self.running[name] = await starting

    async def pass_s(self, seconds: float) -> None:
        for _ in range(int(seconds * 2)):
            await self.clock.advance(0.5)

    async def stop(self, *names: str) -> None:
        """As at SIGTERM."""
        for name in names:
            await self.running.pop(name).__aexit__()

    def nodes(self, name: str) -> set[str]:
        return set(self.running[name].served_nodes())

    async def holders(self) -> dict[str, str]:
        """Who plays each node, as its Lease tells."""
        leases, _ = await self.cluster.list(ports.LEASES, LEASES)
        noted = ((each["metadata"], each["metadata"].get("annotations") or {}) for each in leases)
        return {
            meta["name"]: annotations[names.LEASE_HOLDER]
            for meta, annotations in noted
            if names.LEASE_HOLDER in annotations
        }


@pytest.fixture
async def lab() -> Lab:
    found = Lab()
    await found.cluster.create(ports.GPUPOOLS, None, POOL)
    return found
