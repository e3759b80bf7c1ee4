"""What is seen of pods, and measured of their cold starts."""

import dataclasses
import json
from typing import Any

import pytest

from modelserve.api import names, wire
from modelserve.decide import coldstart
from modelserve.decide.observation import ReplicaState
from modelserve.reconciling import coldstarts, sightings
from modelserve.reconciling.sightings import Now, Sighting

NOW = Now(emulated_s=50_000.0, real_s=5_000.0, wall_s=1.7e9, scale=10.0)
PREDICTED = coldstart.ColdStart(0.05, 0, 60.0, 20.0, 40.0, 0.025)


def pod(**status: Any) -> dict[str, Any]:
    metadata = {"name": "p", "creationTimestamp": "2023-11-14T22:13:20Z"}
    return {"metadata": metadata, "spec": {"nodeName": "dgx-0"}, "status": status}


def stamped(*stamps: tuple[wire.Phase, int, int]) -> dict[str, Any]:
    """A pod with (phase, start, end) in milliseconds before now; an end of None still runs."""
    base = int(NOW.wall_s * 1000)
    told = wire.PhaseStamps(
        10.0,
        tuple(
            wire.PhaseStamp(phase, base - start, base - end if end >= 0 else 0, 60_000)
            for phase, start, end in stamps
        ),
    )
    found = pod()
    found["metadata"]["annotations"] = {names.PHASES: json.dumps(told.to_json())}
    return found


def waiting(reason: str) -> list[dict[str, Any]]:
    return [{"state": {"waiting": {"reason": reason}}}]


@pytest.mark.parametrize(
    ("status", "admitted", "state"),
    [
        ({"conditions": [{"type": "Ready", "status": "True"}]}, False, ReplicaState.READY),
        ({}, True, ReplicaState.ADMITTED),
        ({}, False, ReplicaState.STARTING),
        ({"containerStatuses": waiting("CrashLoopBackOff")}, False, ReplicaState.STUCK),
        ({"containerStatuses": waiting("ImagePullBackOff")}, True, ReplicaState.STUCK),
        ({"containerStatuses": waiting("ContainerCreating")}, False, ReplicaState.STARTING),
    ],
)
def test_a_bound_pod_is_what_its_status_and_the_probes_say(
    status: dict[str, Any], admitted: bool, state: ReplicaState
) -> None:
    assert sightings.state_of(pod(**status), admitted) is state


@pytest.mark.parametrize(
    ("reason", "state"),
    [("Unschedulable", ReplicaState.UNSCHEDULABLE), ("SchedulingGated", ReplicaState.PENDING)],
)
def test_a_pod_without_a_node_is_pending_until_the_scheduler_refuses_it(
    reason: str, state: ReplicaState
) -> None:
    unbound = pod(conditions=[{"type": "PodScheduled", "status": "False", "reason": reason}])
    unbound["spec"] = {}
    assert sightings.state_of(unbound, False) is state


def test_a_leaving_pod_is_terminating_whatever_else_it_is() -> None:
    leaving = pod(conditions=[{"type": "Ready", "status": "True"}])
    leaving["metadata"]["deletionTimestamp"] = "2023-11-14T22:13:20Z"
    assert sightings.state_of(leaving, True) is ReplicaState.TERMINATING


def test_what_was_there_before_us_is_as_old_as_its_stamps_say() -> None:
    old = pod()
    old["metadata"]["creationTimestamp"] = "2023-11-14T22:11:40Z"  # 100 s before now
    seen = sightings.look(None, old, ReplicaState.STARTING, NOW)
    assert seen.created_s == NOW.emulated_s - 1000


def test_what_is_new_since_the_last_look_is_no_older_whatever_the_clocks_say() -> None:
    """Somebody's clock is an hour off: of the API server's stamps, and of the emulator's."""
    old = stamped((wire.Phase.IMAGE_PULL, 3_600_000, -1))
    old["metadata"]["creationTimestamp"] = "2023-11-14T21:13:20Z"
    seen = sightings.look(None, old, ReplicaState.STARTING, NOW, NOW.emulated_s - 2)
    assert (seen.created_s, seen.started_s, seen.phase_s) == (NOW.emulated_s - 2,) * 3


def test_what_happens_now_is_dated_by_us_not_by_whole_seconds() -> None:
    seen = sightings.look(None, pod(), ReplicaState.STARTING, NOW)
    assert seen.created_s == NOW.emulated_s


def test_a_container_that_starts_again_is_starting_since_then() -> None:
    seen = Sighting(0.0, started_s=1.0, ready_since_s=2.0)
    sightings.look(seen, pod(), ReplicaState.STARTING, NOW)
    assert (seen.started_s, seen.ready_since_s) == (NOW.emulated_s, None)


def looked_at(found: dict[str, Any]) -> Sighting:
    seen = Sighting(0.0, predicted=PREDICTED)
    return sightings.look(seen, found, ReplicaState.STARTING, NOW)


def test_the_expected_instant_stays_when_the_wall_clock_jumps() -> None:
    pulling = stamped((wire.Phase.IMAGE_PULL, 1000, -1))
    seen = looked_at(pulling)
    for jump_s in (-3600.0, 3600.0):
        there = dataclasses.replace(NOW, wall_s=NOW.wall_s + jump_s)
        sightings.look(seen, pulling, ReplicaState.STARTING, there, NOW.emulated_s)
        assert sightings.expected_ready_s(pulling, seen, there) == pytest.approx(
            NOW.emulated_s + 50 + 20 + 40 + 0.025
        )


def test_the_expected_instant_follows_the_phase_the_pod_is_in() -> None:
    pulling = stamped((wire.Phase.IMAGE_PULL, 1000, -1))
    seen = looked_at(pulling)
    ready_s = sightings.expected_ready_s(pulling, seen, NOW)
    # 10 of 60 s are over, then weights, warm-up and probe.
    assert ready_s == pytest.approx(NOW.emulated_s + 50 + 20 + 40 + 0.025)


def test_the_expected_instant_moves_when_others_compete() -> None:
    base = int(NOW.wall_s * 1000)
    stamp = wire.PhaseStamp(wire.Phase.WEIGHT_LOAD, base - 1000, 0, 20_000, 90_000)
    found = pod()
    told = wire.PhaseStamps(10.0, (stamp,)).to_json()
    found["metadata"]["annotations"] = {names.PHASES: json.dumps(told)}
    ready_s = sightings.expected_ready_s(found, looked_at(found), NOW)
    assert ready_s == pytest.approx(NOW.emulated_s + 80 + 40 + 0.025)


def test_without_stamps_nothing_is_expected_of_a_phase() -> None:
    assert sightings.expected_ready_s(pod(), Sighting(0.0, predicted=PREDICTED), NOW) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"stamps": [{}]}'])
def test_stamps_that_cannot_be_read_count_as_none(text: str) -> None:
    found = pod()
    found["metadata"]["annotations"] = {names.PHASES: text}
    assert sightings.phase_stamps(found) is None


def test_a_cold_start_is_measured_by_part_in_emulated_seconds() -> None:
    started = stamped(
        (wire.Phase.IMAGE_PULL, 13_000, 7_000),
        (wire.Phase.WEIGHT_LOAD, 7_000, 5_000),
        (wire.Phase.WARM_UP, 5_000, 1_000),
    )
    seen = Sighting(
        NOW.emulated_s - 131, started_s=NOW.emulated_s - 130, ready_since_s=NOW.emulated_s - 9
    )
    took = coldstarts.parts_of(started, seen, NOW)
    assert took is not None
    parts = (took.scheduling_s, took.image_pull_s, took.weight_load_s, took.warm_up_s, took.probe_s)
    assert parts == pytest.approx((1, 60, 20, 40, 1))


def test_a_cold_start_is_not_measured_before_the_warm_up_is_over() -> None:
    warming = stamped((wire.Phase.WARM_UP, 5_000, -1))
    assert coldstarts.parts_of(warming, Sighting(0.0, ready_since_s=1.0), NOW) is None


def test_the_wait_for_a_node_is_told_from_the_schedulers() -> None:
    seen = Sighting(0.0, unschedulable_since_s=NOW.emulated_s - 90)
    sightings.look(seen, pod(), ReplicaState.STARTING, NOW)
    assert (seen.unplaced_s, seen.unschedulable_since_s) == (90, None)
