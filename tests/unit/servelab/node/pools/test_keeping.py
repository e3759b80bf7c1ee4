"""Pools of a fixed size: their nodes are made, and kept as the pool says."""

import copy
from typing import Any

from modelserve.api import conditions


async def test_a_pool_gets_its_nodes_and_says_so(grounds: Any) -> None:
    grounds.pool(nodes=2)
    await grounds.reconcile()
    assert grounds.node_names() == ["dgx-0", "dgx-1"]
    assert (grounds.status()["readyNodes"], grounds.status()["gpus"]) == (2, 16)
    assert grounds.said()["status"] == "True"


async def test_once_all_is_well_nothing_is_written(grounds: Any) -> None:
    grounds.pool(nodes=2)
    await grounds.reconcile()
    grounds.writes.clear()
    await grounds.reconcile()
    assert grounds.writes == []


async def test_a_node_thought_dead_is_posted_ready_again(grounds: Any) -> None:
    grounds.pool()
    await grounds.reconcile()
    node = copy.deepcopy(dict(grounds.node()))
    node["status"]["conditions"][3]["status"] = "Unknown"
    grounds.tell("nodes", node)
    await grounds.reconcile()
    assert conditions.is_true(grounds.node(), "Ready")


async def test_new_labels_reach_the_nodes(grounds: Any) -> None:
    grounds.pool()
    await grounds.reconcile()
    grounds.pool(labels={"team": "a"})
    await grounds.reconcile()
    assert grounds.node()["metadata"]["labels"]["team"] == "a"


async def test_labels_of_slices_go_when_the_gpus_are_whole_again(grounds: Any) -> None:
    grounds.pool(mig={"strategy": "mixed", "profiles": {"3g.40gb": 2}})
    await grounds.reconcile()
    assert grounds.node()["status"]["capacity"]["nvidia.com/mig-3g.40gb"] == "16"
    grounds.pool()
    await grounds.reconcile()
    labels, capacity = grounds.node()["metadata"]["labels"], grounds.node()["status"]["capacity"]
    assert capacity["nvidia.com/gpu"] == "8"
    assert not any("mig-3g" in key for key in (*labels, *capacity))


async def test_of_pools_and_nodes_that_are_gone_nothing_is_remembered(grounds: Any) -> None:
    for number in range(5):
        grounds.pool(f"p{number}", nodes=3, drain={"noticeSeconds": 0})
        await grounds.reconcile()
        await grounds.reconcile()
        assert grounds.keeper.spec(f"p{number}") is not None
        pool = dict(grounds.stores["gpupools"].get(None, f"p{number}"))
        grounds.tell("gpupools", pool, gone=True)
        for _ in range(3):
            await grounds.reconcile(after=2.0)
        assert grounds.node_names() == []
    assert grounds.keeper.remembered == 0


async def test_of_nodes_that_others_of_their_name_replaced_nothing_is_remembered(
    grounds: Any,
) -> None:
    grounds.pool(nodes=2)
    for number in range(20):
        await grounds.reconcile()
        await grounds.reconcile()
        node = copy.deepcopy(dict(grounds.node()))
        node["metadata"]["uid"] = f"u{number}"
        grounds.tell("nodes", node)
    await grounds.reconcile()
    # The pool, two nodes, and how they were when they were right.
    assert grounds.keeper.remembered <= 1 + 2 + 3
