"""Who leads, and who is a member."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from modelserve import errors, ports, testing
from modelserve.adapters import leases, membership
from modelserve.api import names
from modelserve.testing import apiserver


def candidate(
    cluster: ports.Cluster, identity: str, clock: testing.ManualClock
) -> leases.LeaderElection:
    return leases.LeaderElection(cluster, "ns", "lead", identity, clock)


@contextlib.asynccontextmanager
async def leading(election: leases.LeaderElection) -> AsyncIterator[asyncio.Event]:
    """Tries to lead in a task of its own; yields the event of having got it."""
    leads, stop = asyncio.Event(), asyncio.Event()

    async def lead() -> None:
        async with election:
            leads.set()
            await stop.wait()

    task = asyncio.create_task(lead())
    await testing.settle()
    yield leads
    if leads.is_set():
        stop.set()
    else:
        task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def holder(cluster: ports.Cluster) -> str:
    lease = await cluster.get(ports.LEASES, "ns", "lead")
    return str(lease["spec"]["holderIdentity"])


async def pass_on(cluster: ports.Cluster, identity: str) -> None:
    """As another operator does that takes the Lease over."""
    spec = {"holderIdentity": identity, "leaseTransitions": 7}
    await cluster.patch(ports.LEASES, "ns", "lead", {"spec": spec})


def defective(call: apiserver.Call) -> None:
    raise ZeroDivisionError


def unavailable(call: apiserver.Call) -> None:
    raise errors.Unavailable("away")


async def test_the_first_leads_and_gives_it_back() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    async with leading(candidate(cluster, "a", clock)) as leads:
        assert leads.is_set()
        assert await holder(cluster) == "a"
    assert await holder(cluster) == ""


async def test_the_second_waits_as_long_as_the_first_renews() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    first, second = (leading(candidate(cluster, name, clock)) for name in "ab")
    async with first, second as leads:
        await clock.advance(120)
        assert not leads.is_set()


async def test_the_second_takes_over_at_once_when_the_first_stops() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    first = leading(candidate(cluster, "a", clock))
    await first.__aenter__()
    async with leading(candidate(cluster, "b", clock)) as leads:
        await first.__aexit__(None, None, None)
        await clock.advance(2.5)
        assert leads.is_set()


async def test_a_dead_leader_is_replaced_after_the_duration_whatever_the_wall_clock() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    dead = candidate(cluster, "a", clock)
    await dead.acquire()
    clock.set_wall(clock.wall_s() + 3600)
    async with leading(candidate(cluster, "b", clock)) as leads:
        await clock.advance(14)
        assert not leads.is_set()
        await clock.advance(3)
        assert leads.is_set()
        assert (await cluster.get(ports.LEASES, "ns", "lead"))["spec"]["leaseTransitions"] == 1


async def test_a_leader_cut_off_from_the_api_stops_acting_before_another_may_lead() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    election = candidate(cluster, "a", clock)
    async with leading(election):
        cluster.before_call = unavailable
        await clock.advance(7)
        assert election.certain.is_set()
        await clock.advance(7)
        assert (election.certain.is_set(), election.lost.is_set()) == (False, False)


async def test_a_lease_that_nobody_took_during_an_outage_is_led_on() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    election = candidate(cluster, "a", clock)
    async with leading(election):
        cluster.before_call = unavailable
        await clock.advance(60)
        cluster.before_call = lambda call: None
        await clock.advance(3)
        assert (election.certain.is_set(), election.lost.is_set()) == (True, False)


async def test_a_lease_that_is_ours_after_the_machine_was_paused_is_led_on() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    election = candidate(cluster, "a", clock)
    async with leading(election):
        clock.jump(3600)
        await clock.advance(3)
        assert (election.certain.is_set(), election.lost.is_set()) == (True, False)


async def test_who_acts_after_a_pause_waits_until_the_lease_was_looked_at() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    election = candidate(cluster, "a", clock)
    async with leading(election):
        clock.jump(3600)
        acting = asyncio.create_task(election.until_certain())
        await testing.settle()
        assert not acting.done()
        await clock.advance(3)
        assert acting.done()


async def test_a_lead_that_cannot_be_renewed_for_a_defect_of_ours_is_lost() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    election = candidate(cluster, "a", clock)
    async with leading(election):
        cluster.before_call = defective
        await clock.advance(3)
        assert (election.lost.is_set(), election.leads) == (True, False)
        cluster.before_call = lambda call: None


async def test_a_holder_that_is_known_to_have_ended_is_not_waited_out() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    await candidate(cluster, "dead", clock).acquire()
    found = leases.LeaderElection(
        cluster, "ns", "lead", "a", clock, has_ended=lambda identity: identity == "dead"
    )
    async with leading(found) as leads:
        assert leads.is_set()


async def test_a_lease_that_another_has_after_a_pause_is_lost() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    election = candidate(cluster, "a", clock)
    async with leading(election):
        await pass_on(cluster, "b")
        clock.jump(3600)
        await clock.advance(3)
        assert (election.certain.is_set(), election.lost.is_set()) == (False, True)


async def test_a_lease_that_another_had_and_gave_back_is_lost_and_left_free() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    election = candidate(cluster, "a", clock)
    async with leading(election):
        await pass_on(cluster, "")
        clock.jump(3600)
        await clock.advance(3)
        assert election.lost.is_set()
    assert await holder(cluster) == ""


async def test_a_lease_deleted_by_hand_is_made_again() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    election = candidate(cluster, "a", clock)
    async with leading(election):
        await cluster.delete(ports.LEASES, "ns", "lead")
        await clock.advance(3)
        assert (await holder(cluster), election.lost.is_set()) == ("a", False)


async def test_a_lease_that_was_removed_during_an_outage_is_lost() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    election = candidate(cluster, "a", clock)
    async with leading(election):
        cluster.before_call = unavailable
        await clock.advance(12)
        cluster.before_call = lambda call: None
        # As who comes after another that had it, and has ended.
        await cluster.delete(ports.LEASES, "ns", "lead")
        await clock.advance(4)
        assert (election.lost.is_set(), election.leads, election.holder) == (True, False, "")


async def test_a_short_outage_loses_nothing() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    election = candidate(cluster, "a", clock)
    async with leading(election):
        cluster.before_call = unavailable
        await clock.advance(6)
        cluster.before_call = lambda call: None
        await clock.advance(20)
        assert not election.lost.is_set()


async def test_a_stolen_lease_is_noticed() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    election = candidate(cluster, "a", clock)
    async with leading(election):
        body = {"spec": {"holderIdentity": "thief"}}
        await cluster.patch(ports.LEASES, "ns", "lead", body)
        await clock.advance(3)
        assert election.lost.is_set()
    assert await holder(cluster) == "thief"


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
