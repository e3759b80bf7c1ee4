"""What the API server, the scheduler or the kubelet does not take is told where people look."""

from collections.abc import Callable
from typing import Any

import pytest

from modelserve import errors, ports
from modelserve.api.keys import Key
from modelserve.reconciling import sightings
from modelserve.testing.apiserver import Call
from modelserve.testing.stage import Stage

REFUSED = 'Deployment.apps "llama" is invalid: spec.template.spec.priorityClassName'


def refuse_deployments(error: errors.ClusterError) -> Callable[[Call], None]:
    def before_call(call: Call) -> None:
        main = call.verb == "apply" and not call.subresource
        if main and call.resource is ports.DEPLOYMENTS:
            raise error

    return before_call


@pytest.mark.parametrize("error", [errors.Invalid(REFUSED, 422), errors.Forbidden(REFUSED, 403)])
async def test_a_deployment_that_the_api_server_refuses_is_told(error: errors.ClusterError) -> None:
    stage = Stage()
    stage.cluster.before_call = refuse_deployments(error)
    await stage.apply()
    await stage.turn()
    for kind, status in (("Ready", "False"), ("Stalled", "True"), ("AbleToScale", "False")):
        found = await stage.condition(kind)
        assert (found["status"], found["reason"]) == (status, "DeploymentRefused")
        assert REFUSED in found["message"]
    assert "stalled" in (await stage.condition("Available"))["message"]
    assert stage.events.reasons() == ["InvalidSpec"]


async def test_what_was_refused_is_tried_again_by_itself() -> None:
    stage = Stage()
    stage.cluster.before_call = refuse_deployments(errors.Forbidden("exceeded quota", 403))
    await stage.apply()
    await stage.live(5)
    stage.cluster.before_call = lambda call: None
    await stage.live(60)
    assert (await stage.condition("Ready"))["status"] == "True"
    assert not await stage.condition("Stalled")


async def test_replicas_that_run_are_scaled_while_a_change_of_the_spec_is_refused(
    stage: Stage,
) -> None:
    await stage.apply(replicas=3, scaling={"mode": "Manual"})
    await stage.turn()
    stage.cluster.before_call = refuse_deployments(errors.Invalid(REFUSED, 422))
    await stage.apply(replicas=1, template={"priorityClassName": "BAD_NAME"})
    await stage.turn()
    assert (await stage.condition("Stalled"))["reason"] == "DeploymentRefused"
    assert (await stage.condition("AbleToScale"))["status"] == "True"
    assert await stage.replicas() == 1


async def test_pods_that_the_api_server_refuses_are_told(stage: Stage) -> None:
    await stage.wake()
    why = 'pods "llama-1-" is forbidden: no PriorityClass with name no-such was found'
    failure = {"type": "ReplicaFailure", "status": "True", "message": why}
    body = {"status": {"conditions": [failure]}}
    await stage.cluster.patch(ports.DEPLOYMENTS, "default", "llama", body, subresource="status")
    await stage.turn()
    degraded = await stage.condition("Degraded")
    assert (degraded["reason"], why in degraded["message"]) == ("PodsRefused", True)
    assert (await stage.status())["waitingFor"] == "pods, which the API server refuses"


def crashed(words: str) -> dict[str, Any]:
    ended = {"exitCode": 2, "reason": "Error", "message": words}
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container"}
    container = {"state": {"waiting": waiting}, "lastState": {"terminated": ended}}
    return {"phase": "Running", "containerStatuses": [container]}


async def test_a_replica_that_crash_loops_says_with_what_words(stage: Stage) -> None:
    await stage.apply(scaling={"minReplicas": 1})
    await stage.turn()
    await stage.start_pod("llama-1")
    await stage.set_pod_status("llama-1", crashed("usage: vllm\nunrecognized arguments: --no\n"))
    await stage.turn(times=1)
    said = "llama-1 does not start (CrashLoopBackOff, exit code 2: unrecognized arguments: --no)"
    assert [m for r, m in stage.events.told if r == "ReplicaStuck"] == [
        f"{said}: deleted, to be replaced"
    ]
    assert "exit code 2: unrecognized" in (await stage.condition("Degraded"))["message"]


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (crashed(""), "CrashLoopBackOff, exit code 2"),
        (
            {
                "containerStatuses": [
                    {"state": {"waiting": {"reason": "InvalidImageName", "message": "no ref"}}}
                ]
            },
            "InvalidImageName, no ref",
        ),
        (
            {
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "message": "0/4 nodes are available: 4 Insufficient cpu. preemption: no.",
                    }
                ]
            },
            "0/4 nodes are available: 4 Insufficient cpu",
        ),
        ({"phase": "Failed", "message": "evicted: disk"}, "evicted: disk"),
        ({"phase": "Running"}, ""),
    ],
    ids=["no words", "image", "scheduler", "failed", "nothing amiss"],
)
def test_a_pods_trouble_is_told_in_the_words_of_who_met_it(
    status: dict[str, Any], told: str
) -> None:
    assert sightings.trouble({"metadata": {"name": "llama-1"}, "status": status}) == told


@pytest.mark.parametrize(
    ("lacking", "waiting_for"),
    [
        ("4 Insufficient cpu", "a node that takes it"),
        (
            "4 Insufficient nvidia.com/gpu",
            "1 free NVIDIA H100 80GB HBM3 on one node",
        ),
    ],
    ids=["cpu", "gpu"],
)
async def test_a_replica_without_a_node_waits_for_what_the_scheduler_misses(
    stage: Stage, lacking: str, waiting_for: str
) -> None:
    await stage.apply(scaling={"minReplicas": 1})
    await stage.turn()
    await stage.start_pod("llama-1", node="")
    message = f"0/4 nodes are available: {lacking}. preemption: no."
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    condition = {**unscheduled, "message": message}
    await stage.set_pod_status("llama-1", {"phase": "Pending", "conditions": [condition]})
    await stage.live(120)
    assert (await stage.status())["waitingFor"] == waiting_for
    assert lacking in (await stage.condition("Degraded"))["message"]


async def test_a_model_at_rest_at_its_minimum_is_no_event(stage: Stage) -> None:
    await stage.apply(scaling={"minReplicas": 1})
    await stage.live(5)
    assert (await stage.condition("ScalingLimited"))["reason"] == "AtMinimum"
    assert "ScalingLimited" not in stage.events.reasons()


async def test_a_model_that_is_deleted_while_it_is_worked_on_is_forgotten(stage: Stage) -> None:
    def delete(call: Call) -> None:
        stage.world.modelserves.clear()

    stage.cluster.before_call = delete
    stage.gateways.say("llama", held=1, oldest_held_s=0.1)
    assert await stage.reconciler.reconcile(Key("default", "llama")) == stage.clock.real_s()
    assert await stage.reconciler.reconcile(Key("default", "llama")) is None
    assert not stage.reconciler.memories
