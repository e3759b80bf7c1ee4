"""Conditions, counts and what is worth a write."""

import dataclasses
from typing import Any

import pytest

from modelserve.api import spec as specs
from modelserve.api import status as statuses
from modelserve.api import timestamps
from modelserve.api.status import ConditionType
from modelserve.decide import (
    claims,
    coldstart,
    demand,
    judging,
    observation,
    record,
    report,
    victims,
)
from modelserve.decide.facts import Block, Facts
from modelserve.decide.observation import ReplicaState
from modelserve.decide.record import Reason

SPEC = specs.ModelServeSpec.model_validate(
    {"model": {"name": "meta-llama/Llama-3.1-8B-Instruct"}, "gpu": {"product": "h100"}}
)
COLD_START = coldstart.ColdStart(0.05, 0, 77, 15, 39, 0.02)


class AllIsWell:
    """A decision's account of itself."""

    def message(self) -> str:
        return "all is well"

    def numbers(self) -> dict[str, float]:
        return {}

    def going(self) -> victims.Plan:
        return victims.NOBODY

    def scale_down_at_s(self) -> None:
        return None

    def wait_s(self) -> float:
        return 0.0


def replica(uid: str, state: ReplicaState, **more: Any) -> observation.Replica:
    return observation.Replica(uid, uid, state, 0.0, node=more.pop("node", "dgx-0"), **more)


def facts(*replicas: observation.Replica, live: int | None = None, **more: Any) -> Facts:
    decision = record.Decision(1, 1, Reason.STEADY_LOAD, AllIsWell())
    changes = {k: more.pop(k) for k in list(more) if k in decision._fields}
    count = len(replicas) if live is None else live
    seen = observation.Observation(replicas, observation.GatewaySignal(1), count)
    parameters = observation.Parameters(slots=16, cold_start_s=130, service_s=2)
    found = Facts(
        spec=SPEC,
        generation=2,
        seen=seen,
        demand=demand.measure(seen, parameters, 100.0),
        decision=decision._replace(**changes),
        predicted=COLD_START,
        pool_nodes=1,
        gpu_title="NVIDIA H100",
        phases={},
        now_s=100.0,
        now_wall_s=1.7e9,
        scale=10.0,
    )
    return dataclasses.replace(found, **more)


def condition(kind: ConditionType, found: Facts, ignored: int | None = 1) -> Any:
    return next(c for c in judging.conditions(found, ignored, []) if c.type == kind)


def test_replicas_are_counted_by_what_they_are() -> None:
    states = [ReplicaState.READY, ReplicaState.STARTING, ReplicaState.TERMINATING]
    found = facts(*(replica(s, s) for s in states), live=3)
    counts = report.counts(found)
    assert (counts["replicas"], counts["ready_replicas"]) == (2, 1)
    assert (counts["starting_replicas"], counts["draining_replicas"]) == (2, 1)
    assert counts["gpu"].in_use == 3


def test_a_replica_that_only_a_gateway_calls_ready_counts_everywhere_alike() -> None:
    found = facts(replica("a", ReplicaState.ADMITTED))
    assert report.counts(found)["ready_replicas"] == 1
    assert report.counts(found)["starting_replicas"] == 0
    assert condition(ConditionType.AVAILABLE, found).message == "1 replica ready"
    assert report.waiting_for(found) is None


def test_a_late_replica_of_which_nothing_is_told_is_named_with_the_failure_before() -> None:
    starting = replica("p", ReplicaState.STARTING)
    found = facts(starting, stuck_uids=("p",), failed_start="the last start failed, of q (bad)")
    told = condition(ConditionType.DEGRADED, found)
    assert told.message == "1 replica stuck: p (overdue); the last start failed, of q (bad)"


def test_the_wait_is_told_with_phase_node_and_time_left() -> None:
    starting = replica("p", ReplicaState.STARTING, expected_ready_s=141.0)
    found = facts(starting, phases={"p": "ImagePull"})
    assert report.waiting_for(found) == "image pull on dgx-0, 41 s left"


def test_a_pod_without_a_place_waits_for_gpus() -> None:
    found = facts(replica("p", ReplicaState.UNSCHEDULABLE, node=""))
    assert report.waiting_for(found) == "1 free NVIDIA H100 on one node"


def test_nothing_waits_when_all_are_ready() -> None:
    assert report.waiting_for(facts(replica("p", ReplicaState.READY))) is None


def test_emulated_instants_are_told_in_wall_time() -> None:
    counts = report.counts(facts(next_ready_at_s=200.0))
    assert counts["next_ready_at"] == timestamps.format_time(1.7e9 + 10)


@pytest.mark.parametrize("live", [0, 1, 3])
def test_ready_does_not_flip_with_the_count(live: int) -> None:
    assert condition(ConditionType.READY, facts(live=live)).status == "True"


def test_a_transition_time_moves_only_when_the_status_flips() -> None:
    before = judging.conditions(facts(), 1, [])
    later = facts(now_wall_s=1.8e9, active=True)
    after = {c.type: c for c in judging.conditions(later, 1, before)}
    assert after[ConditionType.READY].last_transition_time == timestamps.format_time(1.7e9)
    assert after[ConditionType.ACTIVE].last_transition_time == timestamps.format_time(1.8e9)


@pytest.mark.parametrize(
    ("changes", "kind", "reason"),
    [
        ({"limits": (Reason.AT_MAXIMUM,)}, ConditionType.SCALING_LIMITED, "AtMaximum"),
        ({"limits": (Reason.INSUFFICIENT_GPU,)}, ConditionType.SCALING_LIMITED, "InsufficientGPU"),
        ({"stuck_uids": ("p",)}, ConditionType.DEGRADED, "ReplicasStuck"),
        ({"pool_nodes": 0}, ConditionType.DEGRADED, "NoPool"),
        ({"claim": claims.Claim(foreign=True)}, ConditionType.CONFLICT, "ForeignScale"),
        ({"rolling_out": True}, ConditionType.RECONCILING, "RollingOut"),
        ({"blocked": Block("NameTaken", "taken")}, ConditionType.STALLED, "NameTaken"),
    ],
)
def test_what_is_amiss_is_a_condition_with_its_reason(
    changes: dict[str, Any], kind: ConditionType, reason: str
) -> None:
    found = condition(kind, facts(**changes))
    assert (found.status, found.reason) == ("True", reason)


def test_stabilizing_is_no_limit_of_scaling() -> None:
    found = facts(limits=(Reason.STABILIZING_DOWN, Reason.COOLDOWN))
    assert condition(ConditionType.SCALING_LIMITED, found).status == "False"


def test_reconciling_and_stalled_are_there_only_while_they_apply() -> None:
    kinds = {c.type for c in judging.conditions(facts(), 1, [])}
    assert not kinds & {ConditionType.RECONCILING, ConditionType.STALLED}


def test_numbers_that_move_all_the_time_are_not_of_the_essence() -> None:
    one = statuses.ModelServeStatus(
        demand=statuses.DemandStatus(total=3), waiting_for="image pull on dgx-0, 41 s left"
    )
    two = statuses.ModelServeStatus(
        demand=statuses.DemandStatus(total=5), waiting_for="image pull on dgx-0, 12 s left"
    )
    none = statuses.ModelServeStatus(
        demand=statuses.DemandStatus(total=0), waiting_for="image pull on dgx-0, 12 s left"
    )
    assert report.essence(one) == report.essence(two)
    assert report.essence(one) != report.essence(none)


@pytest.mark.parametrize("field", ["ready_replicas", "desired_replicas", "observed_generation"])
def test_counts_are_of_the_essence(field: str) -> None:
    status = statuses.ModelServeStatus()
    assert report.essence(status) != report.essence(status.model_copy(update={field: 7}))


def test_a_served_name_that_an_older_model_has_is_told() -> None:
    found = condition(ConditionType.DEGRADED, facts(served_name_holder="default/first"))
    assert (found.status, found.reason) == ("True", "ServedNameTaken")
    assert "default/first is older" in found.message


@pytest.mark.parametrize(("target", "status"), [(16, "False"), (17, "True")])
def test_a_target_that_no_replica_can_work_on_at_once_is_told(target: int, status: str) -> None:
    scaling = specs.Scaling(policy=specs.Policy.QUEUE_DEPTH, target_queue_depth=target)
    spec = SPEC.model_copy(update={"scaling": scaling})
    assert condition(ConditionType.DEGRADED, facts(spec=spec, slots=16)).status == status
