"""Replicas whose node is out of reach, as while the emulator is away: kept, and as they were."""

import pytest

from modelserve import ports
from modelserve.testing.stage import Stage

DEADLINE_S = 600.0


async def reports(stage: Stage, *, ready: bool) -> None:
    """The node controller thinks it dead, or the kubelet is back."""
    status = "True" if ready else "Unknown"
    body = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
    await stage.cluster.patch(ports.NODES, None, "dgx-0", body, subresource="status")
    await stage.set_ready("llama-1", ready=ready)


def deleted(stage: Stage) -> list[str]:
    calls = stage.cluster.calls
    return [call.name for call in calls if call.verb == "delete" and call.resource is ports.PODS]


async def pass_by(stage: Stage, seconds: float) -> None:
    for _ in range(10):
        await stage.clock.advance(seconds / 10)
        stage.gateways.say("llama", held=1)
        await stage.turn()


@pytest.fixture
async def serving(stage: Stage) -> Stage:
    """One replica that serves."""
    await stage.apply(scaling={"minReplicas": 1})
    await stage.turn()
    await stage.start_pod("llama-1")
    await stage.set_ready("llama-1")
    await stage.turn()
    return stage


async def test_no_replica_is_deleted_while_its_node_is_away(serving: Stage) -> None:
    await reports(serving, ready=False)
    await pass_by(serving, 3 * DEADLINE_S)
    assert deleted(serving) == []


async def test_another_one_takes_its_place_meanwhile(serving: Stage) -> None:
    await reports(serving, ready=False)
    await pass_by(serving, 3 * DEADLINE_S)
    assert await serving.replicas() == 2


async def test_when_the_node_is_back_its_replica_has_time_to_be_ready_again(
    serving: Stage,
) -> None:
    await reports(serving, ready=False)
    await pass_by(serving, 3 * DEADLINE_S)
    await reports(serving, ready=True)
    await serving.set_ready("llama-1", ready=False)
    await pass_by(serving, 0.9 * DEADLINE_S)
    assert deleted(serving) == []


async def test_one_that_does_not_get_ready_then_is_deleted_after_all(serving: Stage) -> None:
    await reports(serving, ready=False)
    await pass_by(serving, 3 * DEADLINE_S)
    await reports(serving, ready=True)
    await serving.set_ready("llama-1", ready=False)
    await pass_by(serving, 1.2 * DEADLINE_S)
    assert deleted(serving) == ["llama-1"]
