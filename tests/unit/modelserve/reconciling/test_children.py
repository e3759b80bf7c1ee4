"""The Deployment and pods of one ModelServe: rollouts, repairs, victims."""

import pytest

from modelserve import ports
from modelserve.api import names
from modelserve.testing.stage import Stage

COLD = 1000.0  # emulated seconds: longer than any window of the defaults


async def test_a_changed_template_is_applied_and_the_count_stays(stage: Stage) -> None:
    await stage.wake()
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
    await stage.wake()
    await stage.apply(engine={"image": "vllm/vllm-openai:v0.34.0"})
    await stage.turn()
    rolling = (await stage.deployment())["spec"]["strategy"]["rollingUpdate"]
    assert (rolling["maxSurge"], rolling["maxUnavailable"]) == (surge, 1 - surge)


async def test_an_operator_just_started_leaves_a_deployment_at_rest_as_it_is() -> None:
    stage = Stage()
    await stage.add_node(gpus=1)
    await stage.apply()
    await stage.turn()
    await stage.wake()
    before = (await stage.deployment())["metadata"]["generation"]
    stage.restart()
    await stage.turn()
    assert (await stage.deployment())["metadata"]["generation"] == before


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
    await stage.wake()
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
    await stage.wake()
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


async def recreate_without(stage: Stage, *kept: ports.Resource) -> None:
    """``kubectl delete --cascade=orphan`` and apply again: the kept children lose their owner."""
    for resource in kept:
        body = {"metadata": {"ownerReferences": None}}
        await stage.cluster.patch(resource, "default", "llama", body, manager="gc")
    await stage.cluster.delete(ports.MODELSERVES, "default", "llama")
    await stage.turn()
    await stage.apply()
    await stage.turn()


async def test_what_an_earlier_modelserve_of_the_name_left_is_adopted_as_it_runs(
    stage: Stage,
) -> None:
    await stage.wake()
    before = await stage.deployment()
    await recreate_without(stage, ports.DEPLOYMENTS, ports.SERVICES)
    found = await stage.deployment()
    modelserve = await stage.cluster.get(ports.MODELSERVES, "default", "llama")
    assert found["metadata"]["uid"] == before["metadata"]["uid"]
    assert found["metadata"]["ownerReferences"][0]["uid"] == modelserve["metadata"]["uid"]
    assert await stage.replicas() == 1
    assert (await stage.condition("Ready"))["status"] == "True"
    service = await stage.cluster.get(ports.SERVICES, "default", "llama")
    assert service["metadata"]["ownerReferences"][0]["uid"] == modelserve["metadata"]["uid"]


async def test_an_orphan_that_does_not_say_it_was_ours_is_left_alone(stage: Stage) -> None:
    labels = {"metadata": {"labels": {names.LABEL_MANAGED_BY: "helm"}}}
    await stage.cluster.patch(ports.DEPLOYMENTS, "default", "llama", labels, manager="helm")
    await recreate_without(stage, ports.DEPLOYMENTS)
    assert (await stage.condition("Ready"))["reason"] == "NameTaken"


async def crash_loop(stage: Stage, pod: str) -> None:
    statuses = [{"name": "engine", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
    await stage.set_pod_status(pod, {"phase": "Running", "containerStatuses": statuses})
    await stage.turn()


async def replaced(stage: Stage, pod: str, successor: str) -> None:
    await stage.delete_pod(pod)
    await stage.start_pod(successor)
    await stage.turn()


async def test_between_two_replicas_that_fail_the_model_stays_degraded(stage: Stage) -> None:
    await stage.wake()
    for number in range(1, 5):
        await crash_loop(stage, f"llama-{number}")
        assert (await stage.condition("Degraded"))["status"] == "True"
        await replaced(stage, f"llama-{number}", f"llama-{number + 1}")
        told = await stage.condition("Degraded")
        assert (told["status"], told["reason"]) == ("True", "StartsFail")
        assert f"llama-{number} (CrashLoopBackOff" in told["message"]
        await stage.clock.advance(700)
        stage.gateways.say("llama", held=1)


async def test_an_operator_restart_does_not_forget_that_starts_fail(stage: Stage) -> None:
    await stage.wake()
    await crash_loop(stage, "llama-1")
    await replaced(stage, "llama-1", "llama-2")
    stage.restart()
    await stage.turn()
    assert (await stage.condition("Degraded"))["reason"] == "StartsFail"


async def test_a_start_that_succeeds_ends_it(stage: Stage) -> None:
    await stage.wake()
    await crash_loop(stage, "llama-1")
    await replaced(stage, "llama-1", "llama-2")
    await stage.clock.advance(1)
    await stage.set_ready("llama-2")
    await stage.turn()
    assert (await stage.condition("Degraded"))["status"] == "False"


async def test_a_changed_spec_ends_it(stage: Stage) -> None:
    await stage.wake()
    await crash_loop(stage, "llama-1")
    await replaced(stage, "llama-1", "llama-2")
    await stage.apply(engine={"image": "vllm/vllm-openai:v0.34.0"})
    await stage.turn()
    assert (await stage.condition("Degraded"))["status"] == "False"


async def test_a_crash_looping_pod_is_deleted(stage: Stage) -> None:
    await stage.wake()
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
