"""What the operator does for one ModelServe, against the in-memory API server."""

from typing import Any

import pytest

from modelserve import errors, ports
from modelserve.api import names
from modelserve.render import replica_owner
from modelserve.render.replica_owner import Owner
from modelserve.testing import apiserver
from modelserve.testing.stage import Stage

COLD = 1000.0  # emulated seconds: longer than any window of the defaults


@pytest.fixture
async def stage() -> Stage:
    made = Stage()
    await made.add_node()
    await made.apply()
    await made.turn()
    return made


async def awake(stage: Stage) -> str:
    """A request has woken the model and been answered. Returns the pod's UID."""
    stage.gateways.say("llama", held=1, arrivals=1)
    await stage.turn()
    uid = await stage.start_pod("llama-1")
    await stage.set_ready("llama-1")
    stage.gateways.say("llama", arrivals=1, completions=1, service_sum_s=2.0)
    await stage.turn()
    return uid


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
    uid = await awake(stage)
    await stage.clock.advance(COLD)
    await stage.turn()
    assert await stage.replicas() == 0
    assert stage.gateways.fences[0].pod_uids == (uid,)
    assert "ScaledToZero" in stage.events.reasons()


async def test_a_gateway_that_refuses_the_fence_keeps_the_model_up(stage: Stage) -> None:
    await awake(stage)
    stage.gateways.grants = False
    await stage.clock.advance(COLD)
    await stage.turn()
    assert await stage.replicas() == 1
    assert len(stage.gateways.unfenced) == 1


async def test_a_refused_fence_is_asked_for_again_later(stage: Stage) -> None:
    await awake(stage)
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
    await awake(stage)
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
    await awake(stage)
    stage.engines.silent = True
    await stage.clock.advance(COLD)
    await stage.turn()
    assert await stage.replicas() == 1
    assert (await stage.condition("MetricsAvailable"))["status"] == "False"
    assert "MetricsUnavailable" in stage.events.reasons()


async def test_a_live_gateway_that_says_nothing_keeps_the_model_up(stage: Stage) -> None:
    await awake(stage)
    stage.gateways.mute = ("gateway-1",)
    await stage.clock.advance(COLD)
    await stage.turn()
    assert await stage.replicas() == 1


async def test_an_operator_restart_loses_nothing_and_shrinks_nothing(stage: Stage) -> None:
    await awake(stage)
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


async def test_a_foreign_count_is_a_conflict_and_is_taken_back_after_the_down_window(
    stage: Stage,
) -> None:
    await awake(stage)
    await stage.scale_deployment(5)
    await stage.turn()
    assert await stage.replicas() == 5
    assert (await stage.condition("Conflict"))["reason"] == "ForeignScale"
    assert "kubectl" in (await stage.condition("Conflict"))["message"]
    await stage.clock.advance(100)
    await stage.turn()
    assert replica_owner.replicas_owner(await stage.deployment()) is Owner.SCALER
    assert await stage.replicas() == 1
    assert (await stage.condition("Conflict"))["status"] == "False"


async def test_in_mode_manual_the_count_is_what_the_spec_says(stage: Stage) -> None:
    await stage.apply(replicas=3, scaling={"mode": "Manual"})
    await stage.turn()
    assert await stage.replicas() == 3
    await stage.apply(replicas=0)
    await stage.turn()
    assert await stage.replicas() == 0
    assert not stage.gateways.fences


async def test_replicas_written_in_mode_auto_are_a_conflict_and_change_nothing(
    stage: Stage,
) -> None:
    await stage.apply(replicas=4)
    await stage.turn()
    assert await stage.replicas() == 0
    assert (await stage.condition("Conflict"))["reason"] == "ReplicasIgnored"
    assert (await stage.status())["ignoredReplicas"] == 1


async def test_leaving_mode_manual_makes_the_replicas_of_then_the_ignored_ones(
    stage: Stage,
) -> None:
    await stage.apply(replicas=3, scaling={"mode": "Manual"})
    await stage.turn()
    await stage.apply(scaling={"mode": "Auto"})
    await stage.turn()
    assert (await stage.status())["ignoredReplicas"] == 3
    assert (await stage.condition("Conflict"))["status"] == "False"


async def test_a_model_that_does_not_fit_says_how_much_is_missing_and_gets_no_children() -> None:
    stage = Stage()
    await stage.apply(model={"name": "meta-llama/Llama-3.1-70B-Instruct"})
    await stage.turn()
    ready = await stage.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("False", "WeightsDoNotFit")
    assert "141.1 GB" in ready["message"]
    assert "tensorParallel" in ready["message"]
    assert (await stage.condition("Stalled"))["status"] == "True"
    assert stage.events.reasons() == ["InvalidSpec"]
    with pytest.raises(errors.NotFound):
        await stage.deployment()


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"model": {"name": "meta-llama/Lama-9"}}, "UnknownModel"),
        ({"gpu": {"product": "H1000"}}, "UnknownGPU"),
        ({"storage": {"class": "floppy"}}, "UnknownStorageClass"),
    ],
    ids=["model", "gpu", "storage"],
)
async def test_unknown_names_are_conditions(spec: dict[str, Any], reason: str) -> None:
    stage = Stage()
    await stage.apply(**spec)
    await stage.turn()
    assert (await stage.condition("Ready"))["reason"] == reason


async def test_a_mended_spec_is_served(stage: Stage) -> None:
    await stage.apply(gpu={"product": "H1000"})
    await stage.turn()
    assert (await stage.condition("Ready"))["status"] == "False"
    await stage.apply(gpu={"product": "h100"})
    await stage.turn()
    assert (await stage.condition("Ready"))["status"] == "True"
    assert not await stage.condition("Stalled")


async def test_a_pool_that_is_missing_is_flagged() -> None:
    stage = Stage()
    await stage.apply()
    await stage.turn()
    assert (await stage.condition("Degraded"))["reason"] == "NoPool"
    assert (await stage.condition("Ready"))["status"] == "True"


async def test_a_cooldown_below_the_cold_start_is_flagged(stage: Stage) -> None:
    await stage.apply(scaling={"cooldownSeconds": 5})
    await stage.turn()
    assert (await stage.condition("Degraded"))["reason"] == "CooldownBelowColdStart"


async def test_somebody_elses_deployment_of_that_name_is_left_alone() -> None:
    stage = Stage()
    await stage.cluster.create(
        ports.DEPLOYMENTS, "default", {"metadata": {"name": "llama"}, "spec": {"replicas": 7}}
    )
    await stage.apply()
    await stage.turn()
    assert (await stage.condition("Ready"))["reason"] == "NameTaken"
    assert await stage.replicas() == 7


async def test_a_changed_template_is_applied_and_the_count_stays(stage: Stage) -> None:
    await awake(stage)
    await stage.apply(engine={"image": "vllm/vllm-openai:v0.34.0"})
    await stage.turn()
    container = (await stage.deployment())["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "vllm/vllm-openai:v0.34.0"
    assert await stage.replicas() == 1


@pytest.mark.parametrize(("gpus", "surge"), [(8, 1), (1, 0)], ids=["room", "full"])
async def test_a_rollout_surges_only_where_gpus_are_free(gpus: int, surge: int) -> None:
    stage = Stage()
    await stage.add_node(gpus=gpus)
    await stage.apply()
    await stage.turn()
    await awake(stage)
    await stage.apply(engine={"image": "vllm/vllm-openai:v0.34.0"})
    await stage.turn()
    rolling = (await stage.deployment())["spec"]["strategy"]["rollingUpdate"]
    assert (rolling["maxSurge"], rolling["maxUnavailable"]) == (surge, 1 - surge)


async def unplaced(stage: Stage, pod: str) -> None:
    """A pod that the scheduler finds no node for."""
    await stage.start_pod(pod, node="")
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    await stage.set_pod_status(pod, {"phase": "Pending", "conditions": [refused]})


async def test_a_replica_that_waits_for_leaving_ones_lets_no_more_go() -> None:
    stage = Stage()
    await stage.add_node(gpus=1)
    await stage.apply()
    await stage.turn()
    await awake(stage)
    await stage.apply(engine={"image": "vllm/vllm-openai:v0.34.0"})
    await stage.turn()
    await stage.delete_pod("llama-1")
    await unplaced(stage, "llama-2")
    await stage.turn()
    rolling = (await stage.deployment())["spec"]["strategy"]["rollingUpdate"]
    assert (rolling["maxSurge"], rolling["maxUnavailable"]) == (0, 1)


async def test_a_replica_without_gpus_does_not_hold_a_rollout_up() -> None:
    stage = Stage()
    await stage.add_node(gpus=1)
    await stage.apply()
    await stage.turn()
    await awake(stage)
    await unplaced(stage, "llama-2")
    await stage.apply(engine={"image": "vllm/vllm-openai:v0.34.0"})
    await stage.turn()
    rolling = (await stage.deployment())["spec"]["strategy"]["rollingUpdate"]
    assert (rolling["maxSurge"], rolling["maxUnavailable"]) == (0, 2)


async def test_an_edit_of_the_deployment_is_put_right(stage: Stage) -> None:
    patch = {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 1}}}}
    await stage.cluster.patch(ports.DEPLOYMENTS, "default", "llama", patch, manager="edit")
    await stage.turn()
    spec = (await stage.deployment())["spec"]["template"]["spec"]
    assert spec["terminationGracePeriodSeconds"] == 125


async def test_a_deployment_that_lost_its_labels_gets_them_back(stage: Stage) -> None:
    body = {"metadata": {"labels": None}}
    await stage.cluster.patch(ports.DEPLOYMENTS, "default", "llama", body, manager="edit")
    stage.restart()
    await stage.turn()
    assert (await stage.deployment())["metadata"]["labels"][names.LABEL_MODELSERVE] == "llama"
    assert await stage.replicas() == 0


async def test_a_crash_looping_pod_is_deleted(stage: Stage) -> None:
    await awake(stage)
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    statuses = [{"name": "engine", "state": waiting}]
    await stage.set_pod_status("llama-1", {"phase": "Running", "containerStatuses": statuses})
    await stage.turn()
    assert "ReplicaStuck" in stage.events.reasons()
    pod = await stage.cluster.get(ports.PODS, "default", "llama-1")
    assert pod["metadata"]["deletionTimestamp"]


async def test_victims_are_marked_and_the_marks_seen_before_the_count_falls(
    stage: Stage,
) -> None:
    await stage.apply(scaling={"minReplicas": 2})
    await stage.turn()
    for pod in ("llama-1", "llama-2"):
        await stage.start_pod(pod)
        await stage.set_ready(pod)
    await stage.turn()
    await stage.apply(scaling={"minReplicas": 1})
    await stage.clock.advance(COLD)
    await stage.turn(times=1)
    assert await stage.replicas() == 2
    await stage.turn(times=1)
    assert await stage.replicas() == 1
    pods, _ = await stage.cluster.list(ports.PODS)
    costs = [p["metadata"]["annotations"].get(names.POD_DELETION_COST) for p in pods]
    assert sorted(c or "" for c in costs) == ["", "-1"]


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


async def test_gateways_are_told_their_shares(stage: Stage) -> None:
    stage.gateways.live = ("gateway-0", "gateway-1")
    await stage.turn()
    await stage.clock.advance(0)
    assert stage.gateways.shares["llama"] == {"gateway-0": 20, "gateway-1": 20}


async def test_demand_figures_alone_are_written_every_ten_seconds(stage: Stage) -> None:
    await awake(stage)
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
