"""Emulators that do not share: one plays all nodes, and others wait for it to go."""

import asyncio
import logging
from typing import Any

import pytest

from modelserve import errors, ports
from modelserve.api import names
from servelab.node.machines import sharding, shards

LEASE = "servelab-emulator"


async def out(lab: Any, name: str) -> str:
    """Why it ends by itself."""
    running = asyncio.ensure_future(lab.running[name].run())
    await lab.pass_s(8)
    assert running.done(), f"{name} goes on"
    with pytest.raises(errors.SetUpError) as told:
        await running
    return str(told.value)


async def test_a_second_emulator_plays_nothing_and_says_what_it_waits_for(
    lab: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    line = lab.line()
    await lab.start("first", 1, shares=False)
    second = lab.begin("", 2, line)
    await lab.pass_s(120)
    assert (second.done(), line.wrote) == (False, [])
    said = [record.message for record in caplog.records if "waiting" in record.message]
    assert said == [
        f"waiting for Lease {LEASE}, held by instance-1; stop one, or give each a --shard name of "
        "its own, and they share the nodes"
    ]
    second.cancel()
    await lab.stop("first")


async def test_the_second_takes_over_at_once_when_the_first_ends(lab: Any) -> None:
    await lab.start("first", 1, shares=False)
    second = lab.begin("", 2)
    await lab.pass_s(10)
    await lab.stop("first")
    await lab.pass_s(6)
    lab.running["second"] = await second
    assert lab.nodes("second") == lab.nodes_all
    await lab.stop("second")


@pytest.mark.parametrize("trouble", ["cut", "paused"])
async def test_one_that_is_away_writes_no_more_before_another_begins(
    lab: Any, trouble: str
) -> None:
    first, second = lab.line(), lab.line()
    await lab.start("first", 1, first, shares=False)
    waiting = lab.begin("", 2, second)
    await lab.pass_s(20)
    first.cut = trouble == "cut"
    if trouble == "paused":
        first.pause()
    await lab.pass_s(40)
    lab.running["second"] = await waiting
    first.cut = False
    first.go_on()
    assert f"Lease {LEASE} was taken by instance-2" in await out(lab, "first")
    await lab.pass_s(30)
    assert max(first.wrote) + sharding.LAPSE_REAL_S - sharding.GIVE_UP_REAL_S <= min(second.wrote)
    assert lab.nodes("second") == lab.nodes_all
    await lab.stop("second", "first")


async def test_an_api_server_that_was_away_for_both_makes_nobody_take_over(lab: Any) -> None:
    first, second = lab.line(), lab.line()
    await lab.start("first", 1, first, shares=False)
    waiting = lab.begin("", 2, second)
    await lab.pass_s(20)
    first.cut = True
    await lab.pass_s(4)
    second.cut = True
    await lab.pass_s(120)
    second.cut = False
    await lab.pass_s(6)
    first.cut = False
    await lab.pass_s(60)
    assert (waiting.done(), second.wrote) == (False, [])
    assert lab.nodes("first") == lab.nodes_all
    waiting.cancel()
    await lab.stop("first")


@pytest.mark.parametrize("latency_s", [4.0, 8.0])
async def test_one_that_died_is_replaced_however_slow_the_api_server_is(
    lab: Any, latency_s: float
) -> None:
    first, second = lab.line(), lab.line()
    await lab.start("first", 1, first, shares=False)
    first.pause()
    second.latency_s = latency_s
    waiting = lab.begin("", 2, second)
    await lab.pass_s(15)
    assert not waiting.done()
    await lab.pass_s(90)
    second.latency_s = 0.0
    await lab.pass_s(10)
    lab.running["second"] = await waiting
    assert lab.nodes("second") == lab.nodes_all
    first.go_on()
    await lab.stop("second", "first")


async def test_while_its_lead_is_in_doubt_it_says_why_nothing_is_written(lab: Any) -> None:
    line = lab.line()
    us = shards.Membership(line, line, "", "instance-1")
    entered = asyncio.create_task(us.__aenter__())
    await lab.pass_s(1)
    await entered
    running = asyncio.create_task(us.run())
    told = []
    for cut in (False, True, False):
        line.cut = cut
        await lab.pass_s(sharding.GIVE_UP_REAL_S + 2)
        told.append(us.doubt())
    assert told == [
        "",
        f"Lease {LEASE} was not renewed for 10 s: another may play the nodes, so nothing is "
        "written until it is",
        "",
    ]
    running.cancel()
    await us.__aexit__()


async def test_nodes_do_not_change_hands_when_the_api_server_was_away_for_all(lab: Any) -> None:
    lines = {"a": lab.line(), "b": lab.line()}
    for port, (name, line) in enumerate(lines.items()):
        await lab.start(name, port, line)
    await lab.pass_s(20)
    before = {name: dict(lab.running[name].served_nodes()) for name in lines}
    for line in lines.values():
        line.cut = True
    await lab.pass_s(120)
    for line in lines.values():
        line.cut = False
        await lab.pass_s(6)
    await lab.pass_s(40)
    assert {name: dict(lab.running[name].served_nodes()) for name in lines} == before
    await lab.stop("a", "b")


async def test_one_of_the_same_shard_name_waits_as_well(lab: Any) -> None:
    await lab.start("a", 1)
    second = lab.begin("a", 2)
    await lab.pass_s(60)
    assert not second.done()
    await lab.stop("a")
    await lab.pass_s(6)
    lab.running["a"] = await second
    assert lab.nodes("a") == lab.nodes_all
    await lab.stop("a")


@pytest.mark.parametrize("names", [("", "a"), ("a", "")])
async def test_one_that_shares_and_one_that_does_not_wait_for_each_other(
    lab: Any, names: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    line = lab.line()
    await lab.start("first", 1, shares=False) if not names[0] else await lab.start("a", 1)
    first = "first" if not names[0] else "a"
    second = lab.begin(names[1], 2, line)
    await lab.pass_s(60)
    assert (second.done(), line.wrote) == (False, [])
    assert "this one plays no nodes until then; stop one, or" in caplog.text
    await lab.stop(first)
    await lab.pass_s(10)
    lab.running["second"] = await second
    assert lab.nodes("second") == lab.nodes_all
    await lab.stop("second")


async def test_of_both_kinds_begun_at_once_one_plays(lab: Any) -> None:
    lines = {"": lab.line(), "a": lab.line()}
    waiting = {name: lab.begin(name, port, line) for port, (name, line) in enumerate(lines.items())}
    await lab.pass_s(20)
    assert sum(task.done() for task in waiting.values()) == 1
    assert sum(bool(line.wrote) for line in lines.values()) == 1
    for name, task in waiting.items():
        task.cancel()
        if task.done():
            lab.running[name] = task.result()
            await lab.stop(name)


async def test_one_that_shares_takes_over_from_one_that_does_not_and_was_away(lab: Any) -> None:
    first, second = lab.line(), lab.line()
    await lab.start("first", 1, first, shares=False)
    waiting = lab.begin("a", 2, second)
    await lab.pass_s(20)
    first.cut = True
    await lab.pass_s(40)
    lab.running["a"] = await waiting
    first.cut = False
    assert "emulators with --shard a play the nodes" in await out(lab, "first")
    assert max(first.wrote) + sharding.LAPSE_REAL_S - sharding.GIVE_UP_REAL_S <= min(second.wrote)
    await lab.stop("a", "first")


async def test_who_does_not_share_leaves_no_name_of_others_on_nodes(lab: Any) -> None:
    await lab.start("a", 1)
    await lab.pass_s(5)
    await lab.stop("a")
    assert set(await lab.holders()) == lab.nodes_all
    await lab.start("alone", 2, shares=False)
    await lab.pass_s(15)
    assert await lab.holders() == {}
    await lab.stop("alone")


async def test_leases_of_those_that_went_are_removed_by_who_comes(lab: Any) -> None:
    for port, name in enumerate(("a", "b", "c")):
        await lab.start(name, port)
        await lab.stop(name)
    await lab.start("d", 7)
    leases, _ = await lab.cluster.list(ports.LEASES, "kube-node-lease")
    names = {lease["metadata"]["name"] for lease in leases}
    assert {name for name in names if name.startswith(LEASE)} == {f"{LEASE}-d"}
    await lab.stop("d")


async def test_a_lease_that_is_taken_as_old_ones_are_removed_stays(lab: Any) -> None:
    await lab.start("a", 1)
    await lab.stop("a")
    line = lab.line()
    # Who comes looks who is there, says that it is, and looks again; then it removes.
    line.awaited, line.nth = {"label_selector": f"{names.LABEL_EMULATOR}=true"}, 3

    async def take() -> None:
        await lab.start("a", 2)

    waiting = lab.begin("b", 3, line)
    line.meanwhile = take
    await lab.pass_s(2)
    lab.running["b"] = await waiting
    await lab.cluster.get(ports.LEASES, "kube-node-lease", f"{LEASE}-a")
    await lab.stop("a", "b")
