"""What the operator does for one ModelServe, against the in-memory API server."""

import pytest

from modelserve import errors, ports
from modelserve.api import names
from modelserve.render import replica_owner
from modelserve.render.replica_owner import Owner
from modelserve.testing import apiserver, census
from modelserve.testing.stage import Stage

COLD = 1000.0  # emulated seconds: longer than any window of the defaults


def scales(stage: Stage) -> list[apiserver.Call]:
    return [call for call in stage.cluster.calls if call.subresource == "scale"]


async def test_a_new_model_rests_at_zero_and_the_scaler_owns_the_count(stage: Stage) -> None:
    deployment = await stage.deployment()
    assert await stage.replicas() == 0
    assert replica_owner.replicas_owner(deployment) is Owner.SCALER


async def test_a_new_model_is_ready_to_accept_requests_and_not_available(stage: Stage) -> None:
    assert (await stage.condition("Ready"))["status"] == "True"
    assert (await stage.condition("Available"))["reason"] == "AtZero"


async def test_the_status_says_what_was_observed_and_predicted(stage: Stage) -> None:
    status = await stage.status()
    assert status["observedGeneration"] == 1
    assert status["selector"] == "modelserve.dev/modelserve=llama"
    assert status["coldStart"]["predicted"]["weightLoadSeconds"] > 1


async def test_the_status_holds_no_empty_lists(stage: Stage) -> None:
    """`kubectl describe` would print each of them."""
    status = await stage.status()
    assert "history" not in status
    assert "idleGaps" not in status["autoscaler"]


async def test_nothing_more_is_written_while_nothing_changes(stage: Stage) -> None:
    before = len([c for c in stage.cluster.calls if c.verb in ("apply", "patch", "create")])
    await stage.turn(times=10)
    after = len([c for c in stage.cluster.calls if c.verb in ("apply", "patch", "create")])
    assert after == before


async def test_a_resting_model_is_not_looked_at_again_by_itself(stage: Stage) -> None:
    assert await stage.turn() is None


async def test_a_held_request_wakes_the_model_before_anything_else_is_written(
    stage: Stage,
) -> None:
    await stage.watch()
    stage.cluster.calls.clear()
    stage.gateways.say("llama", held=1, arrivals=1)
    await stage.reconciler.reconcile(next(iter(stage.world.modelserves)))
    assert stage.cluster.calls[0].subresource == "scale"
    assert await stage.replicas() == 1


async def test_waking_is_recorded_with_its_reason(stage: Stage) -> None:
    stage.gateways.say("llama", held=3, arrivals=3)
    await stage.turn()
    last = (await stage.status())["lastScale"]
    assert (last["from"], last["to"], last["reason"]) == (0, 1, "Activation")
    assert "Activated" in stage.events.reasons()


async def test_a_model_stays_available_while_a_gateway_knows_of_ready_before_us(
    stage: Stage,
) -> None:
    """The gateway saw the pod Ready and admits it no more; our own watch is a moment behind."""
    stage.gateways.say("llama", held=1, arrivals=1)
    await stage.turn()
    uid = await stage.start_pod("llama-1")
    stage.gateways.say("llama", arrivals=1, admitted=(uid,))
    await stage.turn()
    stage.gateways.say("llama", arrivals=1, completions=1)
    await stage.turn()
    assert (await stage.condition("Available"))["status"] == "True"


async def test_a_quiet_model_goes_back_to_zero_after_the_hand_shake(stage: Stage) -> None:
    uid = await stage.wake()
    await stage.clock.advance(COLD)
    await stage.turn()
    assert await stage.replicas() == 0
    assert stage.gateways.fences[0].pod_uids == (uid,)
    assert "ScaledToZero" in stage.events.reasons()


async def test_a_gateway_that_refuses_the_fence_keeps_the_model_up(stage: Stage) -> None:
    await stage.wake()
    stage.gateways.grants = False
    await stage.clock.advance(COLD)
    await stage.turn()
    assert await stage.replicas() == 1
    assert len(stage.gateways.unfenced) == 1


async def test_a_refused_fence_is_asked_for_again_later(stage: Stage) -> None:
    await stage.wake()
    stage.gateways.grants = False
    await stage.clock.advance(COLD)
    await stage.turn()
    stage.gateways.grants = True
    await stage.clock.advance(60)
    await stage.turn()
    assert await stage.replicas() == 0


async def test_a_write_of_zero_with_an_unknown_result_is_read_before_the_fence_goes(
    stage: Stage,
) -> None:
    await stage.wake()
    await stage.clock.advance(COLD)

    def lose(call: apiserver.Call) -> None:
        if call.subresource == "scale":
            raise errors.Unavailable("no answer")

    stage.cluster.before_call = lose
    await stage.turn(times=1)
    assert await stage.replicas() == 1
    assert len(stage.gateways.unfenced) == 1
    assert stage.cluster.calls[-1].verb == "get" or "get" in [c.verb for c in stage.cluster.calls]


async def test_without_engine_figures_nothing_shrinks(stage: Stage) -> None:
    await stage.wake()
    stage.engines.silent = True
    await stage.clock.advance(COLD)
    await stage.turn()
    assert await stage.replicas() == 1
    assert (await stage.condition("MetricsAvailable"))["status"] == "False"
    assert "MetricsUnavailable" in stage.events.reasons()


async def test_a_live_gateway_that_says_nothing_keeps_the_model_up(stage: Stage) -> None:
    await stage.wake()
    stage.gateways.mute = ("gateway-1",)
    await stage.clock.advance(COLD)
    await stage.turn()
    assert await stage.replicas() == 1


async def test_a_gateway_whose_figures_cannot_be_had_is_named_where_nothing_shrinks(
    stage: Stage,
) -> None:
    await stage.wake()
    stage.gateways.mute, stage.gateways.why_mute = ("gateway-1",), "gateway-1 refuses our token"
    await stage.clock.advance(COLD)
    await stage.turn()
    for kind in ("MetricsAvailable", "AbleToScale"):
        told = await stage.condition(kind)
        assert (told["status"], "gateway-1 refuses our token" in told["message"]) == ("False", True)


async def test_an_operator_restart_loses_nothing_and_shrinks_nothing(stage: Stage) -> None:
    await stage.wake()
    await stage.clock.advance(250)
    await stage.turn()
    history = (await stage.status())["history"]
    stage.restart()
    await stage.turn()
    assert await stage.replicas() == 1
    assert (await stage.status())["history"] == history


@pytest.mark.parametrize("lost_call", range(4))
async def test_an_operator_that_dies_during_creation_is_taken_over_from(lost_call: int) -> None:
    stage = Stage()
    await stage.add_node()
    await stage.apply()
    writes = 0

    def die(call: apiserver.Call) -> None:
        nonlocal writes
        writes += call.verb == "apply"
        if writes > lost_call:
            raise errors.Unavailable("killed")

    stage.cluster.before_call = die
    with pytest.raises(errors.Unavailable):
        await stage.turn()
    stage.cluster.before_call = lambda call: None
    stage.restart()
    await stage.turn()
    assert replica_owner.replicas_owner(await stage.deployment()) is Owner.SCALER
    assert await stage.replicas() == 0


async def test_a_deleted_model_is_forgotten(stage: Stage) -> None:
    await stage.cluster.delete(ports.MODELSERVES, "default", "llama")
    assert await stage.turn() is None
    assert not stage.reconciler.memories


async def test_a_wake_by_hand_wakes_once(stage: Stage) -> None:
    patch = {"metadata": {"annotations": {names.WAKE: "now"}}}
    await stage.cluster.patch(ports.MODELSERVES, "default", "llama", patch)
    await stage.turn()
    assert await stage.replicas() == 1
    await stage.start_pod("llama-1")
    await stage.set_ready("llama-1")
    await stage.turn()
    await stage.clock.advance(COLD)
    await stage.turn()
    assert await stage.replicas() == 0


async def test_nothing_is_remembered_of_models_that_are_gone(stage: Stage) -> None:
    for number in range(5):
        await stage.apply(f"m{number}")
        await stage.turn(f"m{number}")
        await stage.clock.advance(0)
        assert f"m{number}" in stage.gateways.shares
        await stage.cluster.delete(ports.MODELSERVES, "default", f"m{number}")
        await stage.turn(f"m{number}")
    assert list(stage.reconciler.memories) == list(stage.world.modelserves)
    assert list(stage.gateways.shares) in ([], ["llama"])


def all_that_is_left(stage: Stage) -> int:
    """Of what the reconciler refers to, the world around it left aside."""
    around = (stage.cluster, stage.clock, stage.gateways, stage.engines, stage.events)
    return census.reachable(stage.reconciler, apart=around)


async def test_models_that_come_and_go_leave_no_more_than_the_names_of_their_pods(
    stage: Stage,
) -> None:
    left = []
    for number in range(4):
        name = f"m{number}"
        await stage.apply(name)
        await stage.turn(name)
        stage.gateways.say(name, held=1, arrivals=1)
        await stage.turn(name)
        await stage.start_pod(f"{name}-0", name)
        await stage.set_ready(f"{name}-0")
        await stage.turn(name)
        await stage.delete_pod(f"{name}-0")
        await stage.cluster.delete(ports.MODELSERVES, "default", name)
        stage.gateways.models.clear()
        await stage.turn(name)
        await stage.clock.advance(0)
        left.append(all_that_is_left(stage))
    # So that late news brings none of them back: of each its UID, and its pod's.
    assert left[-1] - left[0] <= 3 * 2


async def test_pods_and_counts_of_a_model_that_stays_leave_nothing_behind(stage: Stage) -> None:
    left, arrivals = [], 0
    for number in range(6):
        pod = f"llama-{number}"
        for held in (1, 0):
            arrivals += held
            stage.gateways.say("llama", held=held, arrivals=arrivals, completions=arrivals - held)
            await stage.turn()
            if held:
                await stage.start_pod(pod)
                await stage.set_ready(pod)
                await stage.turn()
        await stage.live(2 * COLD)
        assert await stage.replicas() == 0
        await stage.delete_pod(pod)
        await stage.turn()
        left.append(all_that_is_left(stage))
    # After five times up and down the history is full; a deleted pod's UID is kept for a while.
    assert left[-1] - left[-2] <= 1


async def test_gateways_are_told_their_shares(stage: Stage) -> None:
    stage.gateways.live = ("gateway-0", "gateway-1")
    await stage.turn()
    await stage.clock.advance(0)
    assert stage.gateways.shares["llama"] == {"gateway-0": 20, "gateway-1": 20}


async def test_demand_figures_alone_are_written_every_ten_seconds(stage: Stage) -> None:
    await stage.wake()
    uid = next(iter(stage.world.pods_of(next(iter(stage.world.modelserves)))))
    stage.gateways.say("llama", in_flight={uid: 3}, arrivals=4, completions=1, service_sum_s=2.0)
    await stage.turn()
    stage.gateways.say("llama", in_flight={uid: 5}, arrivals=6, completions=1, service_sum_s=2.0)
    requeue_real_s = await stage.turn()
    assert (await stage.status())["demand"]["total"] == 3
    assert requeue_real_s is not None
    await stage.clock.advance(10)
    await stage.turn()
    assert (await stage.status())["demand"]["total"] == 5
