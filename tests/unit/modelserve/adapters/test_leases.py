"""Who leads."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from modelserve import errors, ports, testing
from modelserve.adapters import leases
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


async def outage(
    cluster: testing.MemoryCluster, clock: testing.ManualClock, for_real_s: float
) -> None:
    """The API server is away for so long."""
    cluster.before_call = unavailable
    await clock.advance(for_real_s)
    cluster.before_call = lambda call: None


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
        await outage(cluster, clock, 60)
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


@pytest.mark.parametrize("latency_s", [1.0, 3.5, 4.5, 8.0])
async def test_a_dead_leader_is_replaced_however_slow_the_api_server_is(
    make_line: Any, latency_s: float
) -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    await candidate(cluster, "dead", clock).acquire()
    line = make_line(cluster, clock)
    line.latency_s = latency_s
    async with leading(candidate(line, "b", clock)) as leads:
        await clock.advance(14)
        assert not leads.is_set()
        await clock.advance(60)
        assert leads.is_set()
        line.latency_s = 0.0


@pytest.mark.parametrize("latency_s", [1.0, 3.5, 4.5])
async def test_a_leader_at_a_slow_api_server_is_not_replaced(
    make_line: Any, latency_s: float
) -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    lines = [make_line(cluster, clock), make_line(cluster, clock)]
    for line in lines:
        line.latency_s = latency_s
    first, second = (
        leading(candidate(line, name, clock)) for line, name in zip(lines, "ab", strict=True)
    )
    async with first:
        await clock.advance(20)
        async with second as leads:
            await clock.advance(300)
            assert not leads.is_set()
            for line in lines:
                line.latency_s = 0.0


@pytest.mark.parametrize("trouble", ["given up by hand", "deleted by hand"])
async def test_a_lease_that_we_took_again_without_an_answer_is_led_on(
    make_line: Any, trouble: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    line = make_line(cluster, clock)
    await candidate(cluster, "before", clock).acquire()
    await pass_on(cluster, "")
    election = candidate(line, "a", clock)
    async with leading(election):
        if trouble == "given up by hand":
            body = {"spec": {"holderIdentity": ""}}
            await cluster.patch(ports.LEASES, "ns", "lead", body)
            line.mute = "replace"
        else:
            await cluster.delete(ports.LEASES, "ns", "lead")
            line.mute = "create"
        await clock.advance(6)
        assert (line.mute, await holder(cluster)) == ("", "a")
        assert (election.lost.is_set(), election.leads) == (False, True)
    assert "we were not told that we took it" in caplog.text


async def test_one_of_our_own_name_that_took_the_lease_is_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    election = candidate(cluster, "a", clock)
    async with leading(election):
        await pass_on(cluster, "a")
        await clock.advance(3)
        assert election.lost.is_set()
    assert "lost the lead to another that calls itself a as we do" in caplog.text


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
        await outage(cluster, clock, 12)
        # As who comes after another that had it, and has ended.
        await cluster.delete(ports.LEASES, "ns", "lead")
        await clock.advance(4)
        assert (election.lost.is_set(), election.leads, election.holder) == (True, False, "")


async def test_a_short_outage_loses_nothing() -> None:
    cluster, clock = testing.MemoryCluster(), testing.ManualClock()
    election = candidate(cluster, "a", clock)
    async with leading(election):
        await outage(cluster, clock, 6)
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
