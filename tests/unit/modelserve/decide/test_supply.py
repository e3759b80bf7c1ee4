"""Which replicas are supply, and which are stuck."""

from dataclasses import replace

import pytest

from modelserve.decide import observation, supply

State = observation.ReplicaState
PARAMETERS = observation.Parameters(slots=8, cold_start_s=90, service_s=10)
GROWING = replace(
    PARAMETERS, cold_start_s=190, gpus=observation.GpuRoom(0, can_grow=True, provision_s=100)
)


def classify(
    *replicas: observation.Replica,
    count: int | None = None,
    now_s: float = 100.0,
    parameters: observation.Parameters = PARAMETERS,
) -> supply.Supply:
    live = len(replicas) if count is None else count
    signal = observation.GatewaySignal(1)
    return supply.classify(observation.Observation(replicas, signal, live), parameters, now_s)


def replica(state: State, created_s: float = 0.0, **fields: object) -> observation.Replica:
    return replace(observation.Replica("a", "a", state, created_s), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("what", "now_s", "kind"),
    [
        pytest.param(replica(State.READY), 100, "ready", id="ready"),
        pytest.param(replica(State.ADMITTED), 100, "ready", id="admitted by a gateway"),
        pytest.param(replica(State.PENDING), 1000, "starting", id="not judged by the scheduler"),
        pytest.param(replica(State.STARTING), 179, "starting", id="within twice the prediction"),
        pytest.param(replica(State.STARTING), 181, "late", id="later than twice the prediction"),
        pytest.param(replica(State.STARTING), 601, "broken", id="past the deadline"),
        pytest.param(replica(State.STARTING, predicted_s=5.0), 29, "starting", id="early days"),
        pytest.param(replica(State.STARTING, started_s=590.0), 601, "starting", id="bound late"),
        pytest.param(replica(State.STARTING, away=True), 9999, "late", id="its node away"),
        pytest.param(replica(State.STUCK), 1, "broken", id="crash-looping"),
        pytest.param(replica(State.UNSCHEDULABLE), 29, "starting", id="unschedulable a moment"),
        pytest.param(replica(State.UNSCHEDULABLE), 31, "unplaced", id="unschedulable for long"),
    ],
)
def test_a_replica_is_worth(what: observation.Replica, now_s: float, kind: str) -> None:
    have = classify(what, now_s=now_s)
    found = {
        "ready": have.ready,
        "starting": len(have.starting_s),
        "late": len(have.late),
        "broken": len(have.broken),
        "unplaced": len(have.unplaced),
    }
    assert {name for name, count in found.items() if count} == {kind}


def test_where_a_pool_can_grow_an_unschedulable_pod_gets_three_provisioning_times() -> None:
    pod = replica(State.UNSCHEDULABLE)
    assert classify(pod, now_s=299, parameters=GROWING).starting_s == (389.0,)
    assert classify(pod, now_s=301, parameters=GROWING).unplaced == ("a",)


def test_replicas_ordered_and_not_seen_yet_are_starting() -> None:
    assert classify(count=2).starting_s == (190.0, 190.0)


def test_a_replica_overdue_by_a_little_is_expected_any_moment() -> None:
    assert classify(replica(State.STARTING, expected_ready_s=95.0)).starting_s == (101.0,)


def test_it_says_when_a_starting_replica_turns_late() -> None:
    assert classify(replica(State.STARTING)).next_change_s == 180
