"""What kubelets tell of their nodes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from modelserve import errors, ports
from modelserve.adapters import events
from modelserve.testing import apiserver
from modelserve.testing.apiserver import MemoryCluster
from modelserve.testing.clock import ManualClock
from servelab.node.machines import announcing, machine
from servelab.node.rules import context

# As recorded of kubelet 1.37.2; the node's UID is known from its registration on.
START = [
    ("Starting", "Starting kubelet.", None),
    ("NodeHasSufficientMemory", "Node n-0 status is now: NodeHasSufficientMemory", None),
    ("NodeHasNoDiskPressure", "Node n-0 status is now: NodeHasNoDiskPressure", None),
    ("NodeHasSufficientPID", "Node n-0 status is now: NodeHasSufficientPID", None),
    ("NodeAllocatableEnforced", "Updated Node Allocatable limit across pods", None),
    ("NodeReady", "Node n-0 status is now: NodeReady", "its"),
]


class Place:
    """A cluster with emulated nodes, and who announces them."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.cluster = MemoryCluster(self.clock.wall_s)
        self.nodes: dict[str, machine.Machine] = {}
        self.cut_off: set[str] = set()
        self.announcer = self.new_announcer()

    def new_announcer(self) -> announcing.Announcer:
        return announcing.Announcer(
            self.cluster, self.clock, self.nodes, lambda name: name in self.cut_off
        )

    async def come(self, name: str = "n-0") -> machine.Machine:
        await self.cluster.create(ports.NODES, None, {"metadata": {"name": name}, "spec": {}})
        return await self.play(name)

    async def play(self, name: str) -> machine.Machine:
        """As one that holds nothing of the node yet."""
        node = await self.cluster.get(ports.NODES, None, name)
        sink = events.EventSink(self.cluster, "kubelet", self.clock, host=name)
        anything: Any = None
        host = context.Host("127.0.0.1", anything, anything, 1.0)
        found = machine.Machine(node, anything, host, anything, sink, anything, lambda: None)
        self.nodes[name] = found
        self.announcer.came(name)
        return found

    async def told(self) -> list[ports.Object]:
        for known in self.nodes.values():
            await known.sink.flush()
        found, _ = await self.cluster.list(ports.EVENTS)
        return sorted(found, key=lambda event: event["metadata"]["name"])

    async def reasons(self) -> list[str]:
        return [event["reason"] for event in await self.told()]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.announcer.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def place() -> Place:
    return Place()


async def test_a_new_node_tells_what_a_starting_kubelet_tells(place: Place) -> None:
    uid = (await place.come()).object["metadata"]["uid"]
    async with place.running():
        await place.clock.advance(2)
    told = [(e["reason"], e["message"], e["involvedObject"].get("uid")) for e in await place.told()]
    assert told == [(reason, text, whose and uid) for reason, text, whose in START]


async def test_events_bear_the_time_of_the_start_not_of_the_telling(place: Place) -> None:
    created = (await place.come()).object["metadata"]["creationTimestamp"]
    await place.clock.advance(30)
    async with place.running():
        await place.clock.advance(2)
    assert {event["firstTimestamp"] for event in await place.told()} == {created}


async def test_a_server_in_trouble_is_not_flooded_and_hears_of_each_start_once(
    place: Place,
) -> None:
    failing, away, tried, found = True, False, 0, errors.NotFound("none", 404)

    def busy(call: apiserver.Call) -> None:
        nonlocal tried
        if failing and call.resource == ports.CSI_NODES:
            tried += 1
            raise errors.Unavailable("slow down", 429) if call.verb == "create" or away else found

    for number in range(50):
        await place.come(f"n-{number}")
    place.cluster.before_call = busy
    async with place.running():
        await place.clock.advance(20)
        away, tried = True, 0
        await place.clock.advance(60)
        assert tried < 60
        failing = False
        await place.clock.advance(120)
    assert {event["count"] for event in await place.told()} == {1}
    assert len((await place.cluster.list(ports.CSI_NODES))[0]) == 50


async def test_the_csi_node_goes_with_its_node(place: Place) -> None:
    await place.come()
    async with place.running():
        await place.clock.advance(2)
    found = await place.cluster.get(ports.CSI_NODES, None, "n-0")
    assert found["spec"] == {"drivers": []}
    assert "kubernetes.io/aws-ebs,kubernetes.io/azure-disk," in str(found["metadata"])
    await place.cluster.delete(ports.NODES, None, "n-0")
    with pytest.raises(errors.NotFound):
        await place.cluster.get(ports.CSI_NODES, None, "n-0")


async def test_after_a_restart_of_the_emulator_no_node_starts_again(place: Place) -> None:
    await place.come()
    async with place.running():
        await place.clock.advance(2)
    place.announcer = place.new_announcer()
    place.announcer.came("n-0")
    async with place.running():
        await place.clock.advance(2)
    assert len(await place.told()) == len(START)


async def test_a_node_that_is_cut_off_tells_of_its_start_when_it_is_back(place: Place) -> None:
    await place.come()
    place.cut_off.add("n-0")
    async with place.running():
        await place.clock.advance(20)
        assert await place.told() == []
        place.cut_off.clear()
        await place.clock.advance(6)
    assert len(await place.told()) == len(START)


async def test_a_call_that_fails_is_made_again(place: Place) -> None:
    await place.come()
    place.cluster.before_call = _away
    async with place.running():
        await place.clock.advance(2)
        place.cluster.before_call = lambda call: None
        await place.clock.advance(6)
    assert await place.cluster.get(ports.CSI_NODES, None, "n-0")


async def test_cordons_are_told_with_the_next_look(place: Place) -> None:
    node = await place.come()
    async with place.running():
        for cordoned in (True, None):
            await place.clock.advance(2)
            body = {"spec": {"unschedulable": cordoned}}
            node.object = await place.cluster.patch(ports.NODES, None, "n-0", body)
            await place.clock.advance(10)
    assert (await place.reasons())[len(START) :] == ["NodeNotSchedulable", "NodeSchedulable"]


@pytest.mark.parametrize("then", [True, None], ids=["cordoned", "uncordoned"])
async def test_a_kubelet_that_starts_tells_of_a_cordon_and_not_of_its_end(
    place: Place, then: bool | None
) -> None:
    await place.come()
    async with place.running():
        await place.clock.advance(2)
    body = {"spec": {"unschedulable": then}}
    await place.cluster.patch(ports.NODES, None, "n-0", body)
    await place.play("n-0")
    async with place.running():
        await place.clock.advance(20)
    assert (await place.reasons())[len(START) :] == (["NodeNotSchedulable"] if then else [])


async def test_a_cordon_taken_back_between_two_looks_is_not_told(place: Place) -> None:
    node = await place.come()
    async with place.running():
        await place.clock.advance(2)
        for cordoned in (True, None):
            body = {"spec": {"unschedulable": cordoned}}
            node.object = await place.cluster.patch(ports.NODES, None, "n-0", body)
        await place.clock.advance(30)
    assert len(await place.told()) == len(START)


def _away(call: Any) -> None:
    if call.resource is ports.CSI_NODES:
        raise errors.Unavailable("away")


async def test_nodes_that_go_before_all_is_told_are_forgotten(place: Place) -> None:
    def busy(call: apiserver.Call) -> None:
        if call.resource == ports.CSI_NODES and call.verb == "create":
            raise errors.Forbidden("not yet", 403)

    place.cluster.before_call = busy
    async with place.running():
        for number in range(5):
            await place.come(f"n-{number}")
            await place.clock.advance(2)
        assert place.announcer.remembered
        place.nodes.clear()
        await place.clock.advance(60)
    assert place.announcer.remembered == 0
