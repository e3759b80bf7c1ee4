"""Which gateways are members."""

import asyncio

from modelserve import errors, ports, testing
from modelserve.adapters import membership
from modelserve.api import names
from modelserve.testing import apiserver


def unavailable(call: apiserver.Call) -> None:
    raise errors.Unavailable("away")


async def test_a_member_renews_its_lease_and_deletes_it_at_the_end() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    member = membership.Membership(cluster, "ns", "gateway-1", "10.0.0.1:8081", "e1", clock)
    task = asyncio.create_task(member.run())
    await member.registered.wait()
    before = await cluster.get(ports.LEASES, "ns", "gateway-1")
    await clock.advance(3.5)
    after = await cluster.get(ports.LEASES, "ns", "gateway-1")
    assert after["spec"]["renewTime"] > before["spec"]["renewTime"]
    assert after["metadata"]["labels"][names.LABEL_GATEWAY] == "true"
    assert after["metadata"]["annotations"] == {
        names.GATEWAY_ADDRESS: "10.0.0.1:8081",
        names.GATEWAY_EPOCH: "e1",
    }
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await cluster.list(ports.LEASES, "ns") == ([], "3")


async def test_a_member_outlives_an_outage() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    cluster.before_call = unavailable
    member = membership.Membership(cluster, "ns", "gateway-1", "10.0.0.1:8081", "e1", clock)
    task = asyncio.create_task(member.run())
    await clock.advance(10)
    assert not member.registered.is_set()
    cluster.before_call = lambda call: None
    await clock.advance(3)
    assert member.registered.is_set()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_member_deletes_only_its_own_lease() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    member = membership.Membership(cluster, "ns", "gateway-1", "10.0.0.1:8081", "e1", clock)
    task = asyncio.create_task(member.run())
    await member.registered.wait()
    await cluster.delete(ports.LEASES, "ns", "gateway-1")
    await cluster.create(ports.LEASES, "ns", {"metadata": {"name": "gateway-1"}, "spec": {}})
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await cluster.get(ports.LEASES, "ns", "gateway-1")
