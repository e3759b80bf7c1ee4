"""The operator comes back by itself where nobody tells it that something is over."""

import pytest

from modelserve import ports
from modelserve.testing.stage import Stage

COOLDOWN_S = 300.0
THEIRS = {
    "metadata": {"name": "taken"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "theirs"}},
        "template": {"metadata": {"labels": {"app": "theirs"}}, "spec": {"containers": []}},
    },
}


@pytest.fixture
async def awake(stage: Stage) -> Stage:
    """A model with one replica that has answered its only request."""
    await stage.wake()
    return stage


async def test_a_refused_fence_is_asked_for_again_though_nothing_else_happens(
    awake: Stage,
) -> None:
    awake.gateways.grants = False
    await awake.live(COOLDOWN_S + 20)
    refused = len(awake.gateways.fences)
    awake.gateways.grants = True
    await awake.live(30)
    assert refused > 1
    assert await awake.replicas() == 0


async def test_a_gateway_that_is_silent_at_the_wrong_moment_only_delays_zero(
    awake: Stage,
) -> None:
    awake.gateways.mute = ("gateway-0",)
    await awake.live(COOLDOWN_S + 20)
    assert await awake.replicas() == 1
    awake.gateways.mute = ()
    await awake.live(2)
    assert await awake.replicas() == 0


async def test_what_holds_zero_back_costs_one_look_a_second(awake: Stage) -> None:
    awake.gateways.mute = ("gateway-0",)
    await awake.live(COOLDOWN_S + 1)
    assert await awake.live(10) <= 12


async def test_an_overdue_drain_is_told_at_its_time(awake: Stage) -> None:
    await awake.apply(drainSeconds=30, scaling={"minReplicas": 1})
    await awake.cluster.delete(ports.PODS, "default", "llama-1", grace_s=1000)
    await awake.start_pod("llama-2")
    await awake.set_ready("llama-2")
    await awake.live(39)
    assert "DrainTimedOut" not in awake.events.reasons()
    await awake.live(2)
    assert awake.events.reasons().count("DrainTimedOut") == 1


async def test_a_replica_that_no_gateway_admits_any_more_soon_counts_as_starting(
    stage: Stage,
) -> None:
    await stage.apply(scaling={"minReplicas": 1})
    await stage.turn()
    uid = await stage.start_pod("llama-1")
    stage.gateways.say("llama", admitted=(uid,))
    await stage.live(1)
    assert (await stage.condition("Available"))["status"] == "True"
    stage.gateways.say("llama")
    await stage.clock.advance(0.5)
    await stage.live(5)
    assert (await stage.condition("Available"))["reason"] == "Starting"


async def test_a_name_that_somebody_gives_free_is_taken(stage: Stage) -> None:
    await stage.cluster.create(ports.DEPLOYMENTS, "default", THEIRS)
    await stage.apply("taken")
    await stage.live(5, "taken")
    assert (await stage.condition("Stalled", "taken"))["reason"] == "NameTaken"
    await stage.cluster.delete(ports.DEPLOYMENTS, "default", "taken")
    await stage.live(60, "taken")
    assert (await stage.deployment("taken"))["metadata"]["ownerReferences"][0]["name"] == "taken"
