"""Nodes that a pool no longer asks for: cordoned, emptied, and off after their notice."""

from typing import Any

import pytest

from modelserve import errors, ports
from modelserve.api import names
from servelab.node.pools import draining

NEVER = float("inf")


async def test_a_lower_count_takes_the_highest_numbers(grounds: Any) -> None:
    grounds.pool(nodes=3)
    await grounds.reconcile()
    grounds.pool(nodes=1)
    await grounds.reconcile()
    assert grounds.node_names() == ["dgx-0", "dgx-1", "dgx-2"]
    await grounds.reconcile(after=1)
    assert grounds.node_names() == ["dgx-0"]


@pytest.mark.parametrize("last", [{}, {"deletionTimestamp": "2027-01-15T08:00:00Z"}])
async def test_a_deleted_pool_has_its_nodes_drained_with_its_own_notice(
    grounds: Any, last: dict[str, Any]
) -> None:
    found = grounds.pool(drain={"noticeSeconds": 30})
    await grounds.reconcile()
    grounds.tell("gpupools", found | {"metadata": found["metadata"] | last}, gone=not last)
    user = grounds.bound("p")
    assert await grounds.reconcile(user) == grounds.now + 1
    assert grounds.node()["spec"]["unschedulable"]
    for passed in (1, 28):
        await grounds.reconcile(user, after=passed)
        assert (grounds.writes[-1], grounds.node_names()) == (("evict", "p"), ["dgx-0"])
    await grounds.reconcile(user, after=1)
    assert grounds.node_names() == []


async def test_a_pod_that_a_disruption_budget_holds_stays_until_the_notice_is_over(
    grounds: Any,
) -> None:
    grounds.pool(drain={"noticeSeconds": 30})
    await grounds.reconcile()
    grounds.guarded = "p"
    grounds.pool(nodes=0, drain={"noticeSeconds": 30})
    user = grounds.bound("p")
    for passed in (0, 1, 28):
        await grounds.reconcile(user, after=passed)
    assert ("evict", "p") not in grounds.writes
    assert ("p", "ScaleDownFailed", "failed to delete pod for ScaleDown") in grounds.events
    await grounds.reconcile(user, after=1)
    assert grounds.node_names() == []


async def test_an_emulator_that_comes_back_drains_the_nodes_of_a_pool_that_went_meanwhile(
    grounds: Any,
) -> None:
    found = grounds.pool()
    await grounds.reconcile()
    grounds.tell("gpupools", found, gone=True)
    grounds.restart()
    await grounds.reconcile()
    assert grounds.node_names() == ["dgx-0"]
    assert await grounds.reconcile(after=1) == NEVER
    assert grounds.node_names() == []


async def test_a_pool_that_went_meanwhile_leaves_its_notice_with_its_nodes(grounds: Any) -> None:
    grounds.pool(drain={"noticeSeconds": 5})
    await grounds.reconcile()
    found = grounds.pool(drain={"noticeSeconds": 30})
    await grounds.reconcile()
    grounds.tell("gpupools", found, gone=True)
    grounds.restart()
    grounds.guarded = "p"
    await grounds.reconcile(grounds.bound("p"))
    assert draining.gone_at_s(grounds.node()) == grounds.now + 30


@pytest.mark.parametrize("said", ["soon", None])
async def test_a_node_without_a_notice_that_can_be_read_has_the_usual_one(
    grounds: Any, said: str | None
) -> None:
    found = grounds.pool()
    await grounds.reconcile()
    await grounds.patch(
        ports.NODES, None, "dgx-0", {"metadata": {"annotations": {names.DRAIN_NOTICE: said}}}
    )
    grounds.tell("gpupools", found, gone=True)
    await grounds.reconcile(grounds.bound("p"))
    assert draining.gone_at_s(grounds.node()) == grounds.now + 120


async def test_a_shrunk_pool_empties_its_nodes_and_switches_them_off_after_the_notice(
    grounds: Any,
) -> None:
    grounds.pool(nodes=1, drain={"noticeSeconds": 30})
    await grounds.reconcile(grounds.bound("p"))
    grounds.pool(nodes=0, drain={"noticeSeconds": 30})
    await grounds.reconcile(grounds.bound("p"))
    await grounds.reconcile(grounds.bound("p"), after=1)
    assert ("evict", "p") in grounds.writes
    assert grounds.status()["drainingNodes"] == 1
    await grounds.reconcile(grounds.bound("p", deletionTimestamp="soon"), after=29)
    assert grounds.node_names() == []


async def test_a_node_whose_deletion_the_server_had_no_time_for_is_looked_at_again(
    grounds: Any,
) -> None:
    grounds.pool(nodes=1)
    await grounds.reconcile()
    grounds.pool(nodes=0)
    await grounds.reconcile()
    grounds.busy = errors.Conflict("changed", 409)
    assert await grounds.reconcile(after=60) <= grounds.now + draining.SETTLE_REAL_S
    grounds.busy = None
    await grounds.reconcile(after=1)
    assert grounds.node_names() == []


async def test_pods_of_a_machine_that_is_gone_go_once_the_server_answers(grounds: Any) -> None:
    grounds.pool(nodes=1)
    await grounds.reconcile(grounds.bound("p"))
    grounds.pool(nodes=0)
    grounds.tell("nodes", grounds.node(), gone=True)
    grounds.busy = errors.Unavailable("away")
    with pytest.raises(errors.Unavailable):
        await grounds.reconcile(grounds.bound("p"))
    grounds.busy = None
    await grounds.reconcile(grounds.bound("p"))
    assert grounds.writes.count(("delete", "p")) == 2


async def test_pods_go_with_a_machine_that_is_gone(grounds: Any) -> None:
    found = grounds.pool(nodes=1)
    await grounds.reconcile(grounds.bound("p"))
    grounds.tell("gpupools", found, gone=True)
    await grounds.reconcile(grounds.bound("p"))
    await grounds.reconcile(grounds.bound("p"))
    assert grounds.writes.count(("evict", "p")) == 1
