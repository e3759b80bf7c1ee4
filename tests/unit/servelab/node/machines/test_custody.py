"""Several emulators on one API server: each node is played by one of them at any time."""

import asyncio
from typing import Any

import pytest

from modelserve import errors, ports, testing
from modelserve.testing import apiserver

POOL = {"spec": {"gpu": "NVIDIA-L4", "gpusPerNode": 1, "nodes": 4}}
POD = {
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"nodeName": "dgx-0", "containers": [{"name": "c", "image": "nginx:1"}]},
}


async def test_two_emulators_share_the_nodes(lab: Any) -> None:
    await lab.start("a", 1)
    await lab.start("b", 2)
    await lab.pass_s(10)
    first, second = lab.nodes("a"), lab.nodes("b")
    assert (first | second, first & second) == (lab.nodes_all, set())
    assert first
    assert second
    assert await lab.holders() == {
        **dict.fromkeys(first, "a"),
        **dict.fromkeys(second, "b"),
    }
    await lab.stop("b", "a")


async def test_a_node_tells_the_kubelet_api_of_the_emulator_that_plays_it(lab: Any) -> None:
    await lab.start("a", 1)
    await lab.start("b", 2)
    await lab.pass_s(10)
    nodes, _ = await lab.cluster.list(ports.NODES)
    told = {
        node["metadata"]["name"]: node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        for node in nodes
    }
    assert told == {name: 2 if name in lab.nodes("b") else 1 for name in lab.nodes_all}
    await lab.stop("b", "a")


async def test_what_an_emulator_played_that_ends_is_taken_over_at_once(lab: Any) -> None:
    await lab.start("a", 1)
    await lab.start("b", 2)
    await lab.pass_s(10)
    await lab.stop("a")
    await lab.pass_s(6)
    assert lab.nodes("b") == lab.nodes_all
    await lab.stop("b")


async def test_what_one_played_that_is_cut_off_is_taken_over_when_it_has_stopped_writing(
    lab: Any,
) -> None:
    cut = lab.line()
    await lab.start("a", 1, cut)
    await lab.start("b", 2)
    await lab.pass_s(10)
    theirs = lab.nodes("a")
    cut.cut = True
    await lab.pass_s(9)
    assert not lab.nodes("b") & theirs
    await lab.pass_s(16)
    assert lab.nodes("b") == lab.nodes_all
    # It hears again, and leaves what has been taken; then it gets its share back.
    cut.cut = False
    await lab.pass_s(30)
    assert (lab.nodes("a"), lab.nodes("b")) == (theirs, lab.nodes_all - theirs)
    await lab.stop("b", "a")


async def test_a_node_never_has_two_writers(lab: Any) -> None:
    cut = lab.line()
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
    await lab.stop("b", "a")


async def test_an_emulator_that_comes_back_under_its_name_waits_for_nobody(lab: Any) -> None:
    await lab.start("a", 1)
    await lab.pass_s(5)
    dead = lab.running.pop("a")
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await asyncio.sleep(0)
    await lab.start("a", 1)
    await lab.pass_s(3)
    assert lab.nodes("a") == lab.nodes_all
    assert dead is not lab.running["a"]
    await lab.stop("a")


async def test_a_lease_that_was_changed_by_hand_is_gone_on_with(lab: Any) -> None:
    await lab.start("a", 1)
    await lab.pass_s(5)
    body = {"metadata": {"labels": {"somebody": "wrote"}}}
    await lab.cluster.patch(ports.LEASES, "kube-node-lease", "dgx-0", body)
    await lab.pass_s(15)
    assert lab.nodes("a") == lab.nodes_all
    assert (await lab.holders())["dgx-0"] == "a"
    await lab.stop("a")


@pytest.mark.parametrize("after_s", [0, 0.5, 1, 1.5])
async def test_one_that_has_just_come_keeps_what_it_took_before_others_knew(
    lab: Any, after_s: float
) -> None:
    slow = lab.line()
    await lab.start("a", 1, slow)
    await lab.pass_s(after_s)
    starting = lab.begin("b", 2)
    await lab.clock.advance(0)
    lab.running["b"] = await starting
    # New nodes fall to the second, and, as far as that knows, to the first, which comes later.
    slow.cut = True
    await lab.cluster.create(ports.GPUPOOLS, None, {**POOL, "metadata": {"name": "more"}})
    await lab.clock.advance(0.2)
    slow.cut = False
    writers = []
    for _ in range(60):
        await lab.clock.advance(0.25)
        both = lab.running.values()
        writers.append([sum(each.may_write(f"more-{n}") for each in both) for n in range(4)])
    assert max(map(max, writers)) == 1
    assert writers[-1] == [1] * 4
    await lab.stop("b", "a")


async def test_a_pod_bound_while_its_node_is_taken_is_played(lab: Any) -> None:
    line = lab.line()
    line.meanwhile = lambda: lab.cluster.create(ports.PODS, "default", POD)
    await lab.start("a", 1, line)
    await lab.pass_s(5)
    assert lab.running["a"].lookup("default", "p") is not None
    await lab.stop("a")


async def test_a_pod_that_ends_while_its_node_is_taken_is_not_played_for_ever(lab: Any) -> None:
    line = lab.line()
    line.meanwhile = lambda: lab.cluster.delete(ports.PODS, "default", "p", grace_s=0)
    await lab.cluster.create(ports.PODS, "default", POD)
    await lab.start("a", 1, line)
    await lab.pass_s(5)
    assert list(lab.running["a"].served()) == []
    await lab.stop("a")


async def test_a_node_that_changes_while_it_is_taken_is_taken_once(lab: Any) -> None:
    line, changes = (
        lab.line(),
        [{"metadata": {"labels": {"changed": n}}} for n in ("once", "twice")],
    )

    async def change() -> None:
        for body in changes:
            for node in lab.nodes_all:
                await lab.cluster.patch(ports.NODES, None, node, body)
            await testing.settle()

    line.meanwhile = change
    await lab.start("a", 1, line)
    await lab.pass_s(5)
    lists = [
        call for call in lab.cluster.calls if call.verb == "list" and call.resource == ports.PODS
    ]
    played = lab.running["a"].served_nodes()
    assert {node.object["metadata"]["labels"]["changed"] for node in played.values()} == {"twice"}
    assert len(lists) == len(played) == len(lab.nodes_all)
    await lab.stop("a")


async def test_a_server_that_lists_no_pods_is_not_flooded_by_who_would_take_nodes(lab: Any) -> None:
    def busy(call: apiserver.Call) -> None:
        if failing and call.verb == "list" and call.resource == ports.PODS:
            raise errors.Unavailable("slow down", 429)

    failing, lab.cluster.before_call = True, busy
    await lab.start("a", 1)
    await lab.pass_s(10)
    before = len(lab.cluster.calls)
    await lab.pass_s(60)
    assert len(lab.cluster.calls) - before < 60 * len(lab.nodes_all)
    failing = False
    await lab.pass_s(12)
    assert lab.nodes("a") == lab.nodes_all
    await lab.stop("a")


async def test_renewals_of_all_nodes_are_spread_over_the_period(lab: Any) -> None:
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
    return call.verb == "patch" and call.resource == ports.LEASES and call.name.startswith("dgx-")
