"""The Lease of one node, on a manual clock."""

import asyncio
from typing import Any

from modelserve import ports, testing
from modelserve.api import timestamps
from servelab.node.machines import heartbeat

# The first Lease of a new node is there by then.
WITHIN_REAL_S = heartbeat.FIRST_AFTER_REAL_S + heartbeat.PERIOD_REAL_S


class Stage:
    """A node of a certain age beside an API server in memory."""

    def __init__(self, age_s: float) -> None:
        self.cluster, self.clock = testing.MemoryCluster(), testing.ManualClock()
        created = timestamps.format_time(self.clock.wall_s() - age_s)
        meta: dict[str, Any] = {"name": "n", "uid": "u", "creationTimestamp": created}
        self.beat = heartbeat.Heartbeat(self.cluster, {"metadata": meta}, self.clock)

    async def run(self, seconds: float) -> list[str]:
        """What was asked of the API server."""
        task = asyncio.create_task(self.beat.run())
        await testing.settle()
        await self.clock.advance(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return [call.verb for call in self.cluster.calls]


async def test_a_node_that_has_just_come_gets_its_lease_without_a_question() -> None:
    stage = Stage(age_s=0.5)
    assert (await stage.run(WITHIN_REAL_S))[0] == "create"
    assert await stage.cluster.get(ports.LEASES, heartbeat.NAMESPACE, "n")


async def test_nodes_that_come_at_once_are_all_there_before_the_first_lease() -> None:
    assert await Stage(age_s=0.0).run(heartbeat.FIRST_AFTER_REAL_S) == []


async def test_a_young_node_that_has_a_lease_keeps_it() -> None:
    stage = Stage(age_s=0.5)
    await stage.cluster.create(ports.LEASES, heartbeat.NAMESPACE, {"metadata": {"name": "n"}})
    await stage.run(WITHIN_REAL_S)
    lease = await stage.cluster.get(ports.LEASES, heartbeat.NAMESPACE, "n")
    assert lease["spec"]["holderIdentity"] == "n"


async def test_a_lease_that_has_stood_is_renewed_at_once() -> None:
    stage = Stage(age_s=3600)
    await stage.cluster.create(ports.LEASES, heartbeat.NAMESPACE, {"metadata": {"name": "n"}})
    assert (await stage.run(0.0))[1:] == ["patch"]
