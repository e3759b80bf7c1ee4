"""Who goes first, and the deletion costs that tell the ReplicaSet so."""

import random
from dataclasses import replace

import pytest

from modelserve.decide import observation, victims

State = observation.ReplicaState


def replica(uid: str, state: State = State.READY, **fields: object) -> observation.Replica:
    return replace(observation.Replica(uid, uid, state, 0.0), **fields)  # type: ignore[arg-type]


FLEET = [
    replica("stuck"),
    replica("pending", State.PENDING),
    replica("loading", State.STARTING),
    replica("idle"),
    replica("light"),
    replica("busy young", created_s=50.0),
    replica("busy old"),
]
LOADS = {"light": 1.0, "busy young": 5.0, "busy old": 5.0}


@pytest.mark.parametrize("seed", range(5))
def test_stuck_then_pending_loading_idle_least_loaded_youngest(seed: int) -> None:
    mixed = [*FLEET, replica("leaving", State.TERMINATING)]
    random.Random(seed).shuffle(mixed)
    ordered = [r.uid for r in victims.order(mixed, {"stuck"}, LOADS)]
    assert ordered == [r.uid for r in FLEET]


def test_costs_tell_ready_victims_apart_and_only_those() -> None:
    plan = victims.plan(FLEET, {"stuck"}, LOADS, 5)
    assert plan.uids == ("stuck", "pending", "loading", "idle", "light")
    assert plan.costs == {"stuck": -5, "idle": -2, "light": -1}


def test_a_marked_replica_stays_the_victim_though_another_is_idle_now() -> None:
    marked = replica("marked", deletion_cost=-1)
    plan = victims.plan([replica("idle"), marked], (), {"marked": 1.0}, 1)
    assert plan.uids == ("marked",)
    assert plan.costs == {}


def test_a_mark_that_no_longer_holds_is_taken_back() -> None:
    plan = victims.plan([replica("a", deletion_cost=-1)], (), {}, 0)
    assert plan.costs == {"a": 0}


def test_only_replicas_idle_within_the_drain_may_go() -> None:
    fleet = [replica("idle"), replica("soon"), replica("late"), replica("new", State.STARTING)]
    loads = {"soon": 8.0, "late": 40.0}
    assert victims.removable(fleet, loads, slots=8, service_s=30, drain_s=60, enough=9) == 3
