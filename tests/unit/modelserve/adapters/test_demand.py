"""Gateways over real sockets: who is live, what they hold, and what all of them grant."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from modelserve import errors, ports, testing
from modelserve.adapters import demand
from modelserve.api import names, wire
from modelserve.testing import apiserver

FENCE = wire.FenceRequest("ns", "llama", "f1", ("u1",))


class Gateway:
    """The internal port of a gateway, driven by hand."""

    def __init__(self, cluster: testing.MemoryCluster, name: str, epoch: str = "e1") -> None:
        self.name = name
        self.epoch = epoch
        self.grants = True
        self.asked: list[tuple[str, Any]] = []
        self.authorizations: set[str] = set()
        self._cluster = cluster
        self._sequence = 0
        self._streams: list[web.StreamResponse] = []
        self._renewals = 0
        self._connected = asyncio.Event()
        application = web.Application()
        application.router.add_get(wire.DEMAND_PATH, self._stream)
        application.router.add_post("/{what}", self._answer)
        self._runner = web.AppRunner(application, shutdown_timeout=0.01)
        self._end = asyncio.Event()

    async def __aenter__(self) -> "Gateway":
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        await self.renew()
        return self

    async def __aexit__(self, *exception: object) -> None:
        self.hang_up()
        await self._runner.cleanup()

    async def renew(self) -> None:
        self._renewals += 1
        host, port = self._runner.addresses[0][:2]
        annotations = {
            names.GATEWAY_ADDRESS: f"{host}:{port}",
            names.GATEWAY_EPOCH: self.epoch,
        }
        metadata = {"labels": {names.LABEL_GATEWAY: "true"}, "annotations": annotations}
        body = {"metadata": metadata, "spec": {"renewTime": str(self._renewals)}}
        await self._cluster.apply(
            ports.LEASES, "sys", self.name, body, manager="gateway", force=True
        )

    async def say(self, held: int, sequence: int | None = None) -> None:
        """Send a snapshot on every open stream."""
        await self._connected.wait()
        self._sequence = self._sequence + 1 if sequence is None else sequence
        model = wire.ModelDemand("ns", "llama", held=held)
        snapshot = wire.DemandSnapshot(self.name, self.epoch, self._sequence, (model,))
        for stream in self._streams:
            await stream.write(json.dumps(snapshot.to_json()).encode() + b"\n")

    def hang_up(self) -> None:
        self._end.set()
        self._end = asyncio.Event()
        self._connected.clear()
        self._streams.clear()

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        self.authorizations.add(request.headers["Authorization"])
        response = web.StreamResponse()
        await response.prepare(request)
        self._streams.append(response)
        self._connected.set()
        await self._end.wait()
        return response

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked.append((request.path, await request.json()))
        return web.json_response(wire.FenceAnswer(self.grants, 0, 0).to_json())


class Operator:
    """A running ``Gateways`` and what it told."""

    def __init__(self, cluster: ports.Cluster, clock: ports.Clock) -> None:
        self.told: list[tuple[str, int, int | None]] = []
        self.turnouts: list[frozenset[str]] = []
        self.troubles: list[frozenset[str]] = []
        self._news = asyncio.Event()
        self.gateways = demand.Gateways(
            cluster,
            "sys",
            "token",
            clock,
            on_snapshot=self._take,
            on_turnout=self.turnouts.append,
            on_troubles=self.troubles.append,
        )

    def _take(self, view: ports.GatewayView, previous: ports.GatewayView | None) -> None:
        before = None if previous is None else previous.snapshot.models[0].held
        self.told.append((view.snapshot.gateway, view.snapshot.models[0].held, before))
        self._news.set()
        self._news = asyncio.Event()

    async def heard(self, count: int) -> None:
        async with asyncio.timeout(10):
            while len(self.told) < count:
                await self._news.wait()

    def live(self) -> list[str]:
        return [view.snapshot.gateway for view in self.gateways.gateways()]


@pytest.fixture
def cluster() -> testing.MemoryCluster:
    return testing.MemoryCluster()


@pytest.fixture
def clock() -> testing.ManualClock:
    return testing.ManualClock()


@pytest.fixture
async def operator(
    cluster: testing.MemoryCluster, clock: testing.ManualClock
) -> AsyncIterator[Operator]:
    one = Operator(cluster, clock)
    async with one.gateways:
        task = asyncio.create_task(one.gateways.run())
        await one.gateways.leases.synced.wait()
        yield one
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_snapshots_are_told_with_the_one_before(
    cluster: testing.MemoryCluster, operator: Operator
) -> None:
    async with Gateway(cluster, "g1") as gateway:
        await gateway.say(1)
        await gateway.say(5)
        await operator.heard(2)
        assert operator.told == [("g1", 1, None), ("g1", 5, 1)]
        [view] = operator.gateways.gateways()
        assert view.snapshot.models[0].held == 5
        assert operator.gateways.silent() == []
        assert gateway.authorizations == {"Bearer token"}


async def test_a_lease_without_a_word_is_live_and_silent(
    cluster: testing.MemoryCluster, operator: Operator
) -> None:
    async with Gateway(cluster, "g1"):
        await testing.settle()
        assert operator.live() == []
        assert operator.gateways.silent() == ["g1"]


async def test_silence_is_a_trouble_once_it_lasts(
    cluster: testing.MemoryCluster, clock: testing.ManualClock, operator: Operator
) -> None:
    async with Gateway(cluster, "g1"):
        await testing.settle()
        assert operator.gateways.troubles() == []
        await clock.advance(4)
        [sentence] = operator.gateways.troubles()
        assert sentence.startswith("gateway g1 at 127.0.0.1:")
        assert operator.troubles == [{sentence}], "models are looked at again"


async def test_after_a_start_every_gateway_is_waited_for(
    cluster: testing.MemoryCluster, operator: Operator
) -> None:
    async with Gateway(cluster, "g1") as first, Gateway(cluster, "g2") as second:
        await testing.settle()
        waiting = asyncio.create_task(operator.gateways.introduced(most_real_s=60))
        await first.say(1)
        await operator.heard(1)
        assert not waiting.done()
        await second.say(1)
        await waiting
        assert operator.live() == ["g1", "g2"]


async def test_one_that_stays_silent_is_not_waited_for_for_ever(
    cluster: testing.MemoryCluster, operator: Operator
) -> None:
    async with Gateway(cluster, "g1"):
        await testing.settle()
        await operator.gateways.introduced(most_real_s=0.01)
        assert operator.gateways.silent() == ["g1"]


async def test_neither_lease_nor_stream_is_dropped_after_ten_seconds(
    cluster: testing.MemoryCluster, clock: testing.ManualClock, operator: Operator
) -> None:
    async with Gateway(cluster, "g1") as gateway:
        await gateway.say(3)
        await operator.heard(1)
    await clock.advance(9)
    assert operator.live() == ["g1"]
    await clock.advance(2)
    assert operator.live() == []
    assert operator.turnouts == [{"g1"}, set()]


async def test_a_fresh_lease_keeps_a_gateway_whose_old_figures_are_dropped(
    cluster: testing.MemoryCluster, clock: testing.ManualClock, operator: Operator
) -> None:
    async with Gateway(cluster, "g1") as gateway:
        await gateway.say(3)
        await operator.heard(1)
        for _ in range(4):
            await clock.advance(3)
            await gateway.renew()
            await testing.settle()
        assert operator.live() == []
        assert operator.gateways.silent() == ["g1"]
        assert operator.turnouts == [{"g1"}, set()], "what was decided on them is looked at again"
        assert await operator.gateways.fence(FENCE), "it is still asked"


async def test_an_outage_of_the_api_alone_drops_nobody(
    cluster: testing.MemoryCluster, clock: testing.ManualClock, operator: Operator
) -> None:
    async with Gateway(cluster, "g1") as gateway:
        for count in range(1, 6):
            await gateway.say(count)
            await operator.heard(count)
            await clock.advance(8)
        assert operator.live() == ["g1"]
        assert operator.turnouts == [{"g1"}]


async def test_a_wall_clock_that_jumps_changes_nothing(
    cluster: testing.MemoryCluster, clock: testing.ManualClock, operator: Operator
) -> None:
    async with Gateway(cluster, "g1") as gateway:
        await gateway.say(1)
        await operator.heard(1)
        clock.set_wall(clock.wall_s() + 3600)
        await clock.advance(5)
        assert operator.live() == ["g1"]


async def test_only_of_a_gateway_that_vanishes_is_warned(
    cluster: testing.MemoryCluster, clock: Any, operator: Operator, caplog: Any
) -> None:
    async with Gateway(cluster, "g1"), Gateway(cluster, "g2"):
        await clock.advance(1)
        await cluster.delete(ports.LEASES, "sys", "g1")
        await testing.settle()
    await clock.advance(12)
    assert [r.args for r in caplog.records if r.levelno == logging.WARNING] == [("g2",)]


async def test_a_gateway_that_takes_its_leave_is_gone_at_once(
    cluster: testing.MemoryCluster, clock: testing.ManualClock, operator: Operator
) -> None:
    async with Gateway(cluster, "g1") as gateway:
        await gateway.say(3)
        await operator.heard(1)
        await cluster.delete(ports.LEASES, "sys", "g1")
        await testing.settle()
        assert operator.live() == ["g1"], "its stream still counts: it is finishing"
    async with asyncio.timeout(10):
        while operator.live():  # noqa: ASYNC110 (the socket's end has no event of ours)
            await asyncio.sleep(0.001)


async def test_a_broken_stream_is_opened_again(
    cluster: testing.MemoryCluster, clock: testing.ManualClock, operator: Operator
) -> None:
    async with Gateway(cluster, "g1") as gateway:
        await gateway.say(1)
        await operator.heard(1)
        gateway.hang_up()
        saying = asyncio.create_task(gateway.say(2))
        async with asyncio.timeout(10):
            while not saying.done():
                await clock.advance(0.1)
                await asyncio.sleep(0.001)
        await operator.heard(2)
        assert operator.told[1] == ("g1", 2, 1)


async def test_a_restarted_gateway_is_compared_with_nothing_of_before(
    cluster: testing.MemoryCluster, operator: Operator
) -> None:
    async with Gateway(cluster, "g1", "e1") as gateway:
        await gateway.say(9)
        await operator.heard(1)
    async with Gateway(cluster, "g1", "e2") as gateway:
        await gateway.say(1)
        await operator.heard(2)
    assert operator.told[1] == ("g1", 1, None)


async def test_a_snapshot_out_of_turn_is_left_aside(
    cluster: testing.MemoryCluster, operator: Operator
) -> None:
    async with Gateway(cluster, "g1") as gateway:
        await gateway.say(1, sequence=7)
        await gateway.say(2, sequence=6)
        await gateway.say(3, sequence=8)
        await operator.heard(2)
        assert operator.told == [("g1", 1, None), ("g1", 3, 1)]


async def test_a_fence_needs_every_live_gateway(
    cluster: testing.MemoryCluster, operator: Operator
) -> None:
    async with Gateway(cluster, "g1") as first, Gateway(cluster, "g2") as second:
        await testing.settle()
        assert await operator.gateways.fence(FENCE)
        second.grants = False
        assert not await operator.gateways.fence(FENCE)
        paths = [path for path, _ in first.asked]
        assert paths == ["/fence", "/fence", "/unfence"]
        assert first.asked[0][1] == FENCE.to_json()
        assert first.asked[2][1]["fenceId"] == "f1"


async def test_nobody_live_grants_nothing(operator: Operator) -> None:
    assert not await operator.gateways.fence(FENCE)


async def test_no_answer_is_no_grant(cluster: testing.MemoryCluster, operator: Operator) -> None:
    async with Gateway(cluster, "g1") as gateway:
        pass
    async with Gateway(cluster, "g2") as other:
        await testing.settle()
        assert not await operator.gateways.fence(FENCE)
        assert [path for path, _ in other.asked] == ["/fence", "/unfence"]
    assert gateway.asked == []


async def test_a_share_is_told_once_and_again_after_a_restart(
    cluster: testing.MemoryCluster, operator: Operator
) -> None:
    async with Gateway(cluster, "g1") as gateway:
        await testing.settle()
        for count in (4, 4, 6):
            await operator.gateways.share("ns", "llama", {"g1": count, "unknown": 1})
        told = [body["inFlightPerReplica"] for _, body in gateway.asked]
        assert told == [4, 6]
    async with Gateway(cluster, "g1", "e2") as gateway:
        await testing.settle()
        await operator.gateways.share("ns", "llama", {"g1": 6})
        assert len(gateway.asked) == 1


async def test_of_models_that_are_gone_no_share_is_remembered(
    cluster: testing.MemoryCluster, operator: Operator
) -> None:
    async with Gateway(cluster, "g1") as gateway:
        await testing.settle()
        for number in range(10):
            telling = asyncio.create_task(operator.gateways.share("ns", f"m{number}", {"g1": 4}))
            await (telling if number % 2 else asyncio.sleep(0))  # half go while it is told
            operator.gateways.forget("ns", f"m{number}")
            await telling
        assert operator.gateways.shares_told == 0
        await operator.gateways.share("ns", "m0", {"g1": 4})
        assert len(gateway.asked) == 11


async def test_a_lease_without_an_address_is_left_aside(
    cluster: testing.MemoryCluster, operator: Operator
) -> None:
    body = {"metadata": {"name": "odd", "labels": {names.LABEL_GATEWAY: "true"}}, "spec": {}}
    await cluster.create(ports.LEASES, "sys", body)
    await testing.settle()
    assert operator.live() == []


async def test_no_gateway_is_known_before_the_leases_are() -> None:
    cluster = testing.MemoryCluster()

    def away(call: apiserver.Call) -> None:
        raise errors.Unavailable("away")

    cluster.before_call = away
    async with demand.Gateways(cluster, "sys", "t", testing.ManualClock()) as gateways:
        assert list(gateways.gateways()) == []
        assert not await gateways.fence(FENCE)
