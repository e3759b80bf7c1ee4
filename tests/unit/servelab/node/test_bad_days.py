"""An API server that is away, or answers 409, 410, 429 or 500: nodes stand, nothing floods."""

import itertools
from collections.abc import AsyncIterator

import pytest

from modelserve import errors, ports, testing
from modelserve.testing import apiserver
from servelab.engine import pool
from servelab.node import emulator, figures
from servelab.node.pools import registration

NODES = 20
POOL = {
    "metadata": {"name": "dgx"},
    "spec": {"gpu": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8, "nodes": NODES},
}
BAD_DAY_REAL_S = 60
ANSWERS = {
    "away": errors.Unavailable("no route to host"),
    "conflict": errors.Conflict("changed", 409),
    "expired": errors.Expired("too old", 410),
    "throttled": errors.Unavailable("slow down", 429, "TooManyRequests", 5.0),
    "broken": errors.Unavailable("internal error", 500),
}


class Stage:
    """An emulator, and an API server whose writes fail while told to."""

    def __init__(self) -> None:
        self.cluster, self.clock = testing.MemoryCluster(), testing.ManualClock()
        self.failing: errors.ClusterError | None = None
        self.tried = 0
        self.cluster.before_call = self._before
        kubelet = registration.Kubelet("127.0.0.1", 1)
        engines = pool.WorkerPool(1, 1.0)
        self.emulator = emulator.Emulator(
            self.cluster, self.clock, engines, kubelet, figures.Figures()
        )

    async def pass_s(self, seconds: int) -> None:
        for _ in range(seconds):
            await self.clock.advance(1)

    async def leases(self) -> int:
        found, _ = await self.cluster.list(ports.LEASES, "kube-node-lease")
        return sum(lease["metadata"]["name"].startswith("dgx-") for lease in found)

    def _before(self, call: apiserver.Call) -> None:
        if self.failing is not None and call.verb not in ("get", "list", "watch"):
            self.tried += 1
            raise self.failing


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    found = Stage()
    async with found.emulator:
        yield found


@pytest.mark.parametrize("answer", ANSWERS)
async def test_nodes_come_once_the_server_is_well(stage: Stage, answer: str) -> None:
    await stage.cluster.create(ports.GPUPOOLS, None, POOL)
    stage.failing = ANSWERS[answer]
    await stage.pass_s(BAD_DAY_REAL_S)
    stage.failing = None
    assert stage.tried < NODES * BAD_DAY_REAL_S / 4
    await stage.pass_s(20)
    assert len((await stage.cluster.list(ports.NODES))[0]) == NODES
    assert await stage.leases() == NODES


@pytest.mark.parametrize("answer", ANSWERS)
async def test_renewals_neither_end_nor_flood(stage: Stage, answer: str) -> None:
    await stage.cluster.create(ports.GPUPOOLS, None, POOL)
    await stage.pass_s(15)
    stage.failing = ANSWERS[answer]
    await stage.pass_s(BAD_DAY_REAL_S)
    stage.failing = None
    # A kubelet's longest pause between two tries is 7 s, and the shortest of these half of it.
    assert stage.tried < NODES * (BAD_DAY_REAL_S / 3.5 + 4)
    before = len(stage.cluster.calls)
    await stage.pass_s(19)
    after = itertools.islice(stage.cluster.calls, before, None)
    renewed = {call.name for call in after if call.resource == ports.LEASES}
    assert renewed >= {f"dgx-{number}" for number in range(NODES)}
