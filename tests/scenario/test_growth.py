"""Invariants 1, 3 and 8: what makes a model grow, and what must not, in virtual time."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelserve.api import spec as api
from modelserve.decide import observation, scaling, state, windows

# The plant's class lives in conftest.py, which no test can import by name.
Plants = Any

State = observation.ReplicaState
FEW = settings(max_examples=8, deadline=None)
MANY = settings(max_examples=40, deadline=None)


def steadily(rate_per_s: float, until_s: float) -> list[float]:
    return [i / rate_per_s for i in range(int(rate_per_s * until_s))]


@given(
    rate_per_s=st.floats(0.1, 4),
    cold_start_s=st.sampled_from([5.0, 30.0, 90.0, 300.0]),
    service_s=st.sampled_from([2.0, 10.0, 40.0]),
)
@FEW
def test_constant_load_peaks_at_the_steady_need_and_what_drains_the_backlog(
    plant: Plants,
    parameters: observation.Parameters,
    rate_per_s: float,
    cold_start_s: float,
    service_s: float,
) -> None:
    """Invariant 1. The allowance: the backlog of one cold start worked off in the drain goal."""
    given_ = replace(parameters, cold_start_s=cold_start_s, service_s=service_s, max_replicas=1000)
    run = plant(
        given_, steadily(rate_per_s, 900), service_s=service_s, cold_start_s=cold_start_s, step_s=1
    ).run(900 + cold_start_s)
    steady = rate_per_s * service_s / (given_.slots * given_.utilization)
    backlog = rate_per_s * (cold_start_s + given_.goal_s)
    drain = backlog / given_.goal_s * service_s / given_.slots
    assert run.peak <= math.ceil(steady + drain) + 1


@given(
    ready=st.integers(0, 2),
    expected_s=st.lists(st.floats(0, 400), min_size=1, max_size=5),
    held=st.integers(1, 400),
    cold_start_s=st.floats(20, 300),
    service_s=st.floats(1, 40),
)
@MANY
def test_what_starting_replicas_will_have_drained_is_not_ordered_again(
    parameters: observation.Parameters,
    ready: int,
    expected_s: list[float],
    held: int,
    cold_start_s: float,
    service_s: float,
) -> None:
    """Invariant 1. One ordered now could help from T on: what is left by then, and no more, counts.

    Nothing more arrives, so what each replica works off until T is its time there over Ŝ, a slot.
    """
    given_ = replace(parameters, cold_start_s=cold_start_s, service_s=service_s, max_replicas=1000)
    kept = ready + len(expected_s)
    found = (
        *(full(number, given_.slots) for number in range(ready)),
        *(starting(ready + number, at_s) for number, at_s in enumerate(expected_s)),
    )
    seen = observation.Observation(
        found, observation.GatewaySignal(live_gateways=1, held=held), kept
    )
    decision, _ = scaling.decide(seen, given_, state.ScalerState(), 0.0)
    # An instant that has all but come is taken for one second ahead.
    there_s = [cold_start_s] * ready + [cold_start_s - max(1.0, at_s) for at_s in expected_s]
    drained = sum(max(0.0, each) for each in there_s) * given_.slots / service_s
    left = max(0.0, held - drained)
    takes = left / given_.goal_s * service_s / given_.slots
    assert decision.desired <= max(kept, math.ceil(takes - 1e-6))


def full(number: int, slots: int) -> observation.Replica:
    """A ready replica with a request in each slot."""
    uid, load = f"p{number}", float(slots)
    return observation.Replica(
        uid, uid, State.READY, -1e3, ready_since_s=-900.0, waiting=0.0, running=load
    )


def starting(number: int, ready_at_s: float) -> observation.Replica:
    uid = f"p{number}"
    return observation.Replica(
        uid, uid, State.STARTING, 0.0, started_s=0.0, expected_ready_s=ready_at_s
    )


@given(cold_start_s=st.floats(5, 400), lag_s=st.sampled_from([0.0, 2.0]))
@FEW
def test_starting_replicas_never_cause_growth(
    plant: Plants, parameters: observation.Parameters, cold_start_s: float, lag_s: float
) -> None:
    """Invariant 1: a burst that is held through a whole cold start orders all it needs at once.

    Also where the watch shows a pod only some time after it was ordered.
    """

    def late(seen: observation.Observation, now_s: float) -> observation.Observation:
        known = tuple(each for each in seen.replicas if each.created_s <= now_s - lag_s)
        return replace(seen, replicas=known)

    given_ = replace(parameters, cold_start_s=cold_start_s)
    run = plant(given_, [0.0] * 60, cold_start_s=cold_start_s, distort=late)
    run.run(cold_start_s - 1)
    assert run.writes[-1][0] <= 31


def test_a_replica_that_hangs_orders_nothing_while_others_start(
    plant: Plants, parameters: observation.Parameters
) -> None:
    """Invariant 1: the progress guard waits for what was ordered."""
    given_ = replace(parameters, cold_start_s=300.0)
    run = plant(given_, steadily(0.5, 600), cold_start_s=300.0, step_s=1).run(600)
    run.service_s = 1e6
    run.arrivals_s = [*run.arrivals_s, *[601.0] * 60]
    run.run(620)
    ordered = run.count
    assert ordered > 1
    run.run(890)
    assert run.count == ordered


@given(
    at_s=st.floats(0, 2000),
    restart_s=st.floats(0, 2000),
    policy=st.sampled_from(list(api.Policy)),
    mode=st.sampled_from([api.Mode.AUTO, api.Mode.SCALE_UP_ONLY]),
    target=st.floats(1, 500),
    utilization=st.floats(0.01, 2),
    activation=st.integers(1, 3),
    room=st.sampled_from([None, 0, 5]),
)
@MANY
def test_one_held_request_always_wakes_the_model(
    plant: Plants,
    parameters: observation.Parameters,
    at_s: float,
    restart_s: float,
    policy: api.Policy,
    mode: api.Mode,
    target: float,
    utilization: float,
    activation: int,
    room: int | None,
) -> None:
    """Invariant 3, with any rounding, an operator restart at any time, and no GPU free."""
    given_ = replace(
        parameters,
        policy=policy,
        mode=mode,
        target_queue_depth=target,
        utilization=utilization,
        burst_headroom=activation - 1,
        tolerance=1.0,
        activation_replicas=activation,
        gpus=observation.GpuRoom(room),
        up=windows.Direction(3600.0, (windows.Rate(windows.Unit.PERCENT, 1, 1800),)),
    )
    run = plant(given_, [at_s], step_s=2.0).run(min(restart_s, at_s + 50))
    run.restart_operator()
    run.run(at_s + 150)
    assert run.peak >= (activation if room is None else min(activation, room + 1))
    assert [wait_s <= parameters.cold_start_s + 4 for wait_s in run.waits_s] == [True]


@pytest.mark.parametrize("gpus", [0, 1, 2])
def test_unschedulable_pods_are_no_supply_and_block_nothing(
    plant: Plants, parameters: observation.Parameters, gpus: int
) -> None:
    """Invariant 8: they are cut to one, the rest goes on serving, and the model still sleeps."""
    given_ = replace(parameters, drain_s=10_000)
    run = plant(given_, steadily(2, 900), gpus=gpus, step_s=1).run(800)
    assert run.count == gpus + 1
    assert len(run.decisions[-1].stuck_uids) == 1
    assert run.decisions[-1].missing_gpu_replicas >= 1
    run.gpus = 100
    run.run(4000)
    assert len(run.waits_s) == 1800
    assert run.count == 0


def test_a_model_whose_pods_get_no_gpu_sleeps_all_the_same(
    plant: Plants, parameters: observation.Parameters
) -> None:
    """Invariant 8: no figures come of a pod without a node, and none are waited for."""
    given_ = replace(parameters, drain_s=10_000)
    run = plant(given_, steadily(2, 300), gpus=1, step_s=1).run(200)
    assert run.decisions[-1].stuck_uids
    run.run(3000)
    assert (len(run.waits_s), run.count) == (600, 0)


@pytest.mark.parametrize(("since_s", "stuck"), [(179.0, False), (181.0, True)])
def test_a_pool_that_says_it_can_grow_is_believed_three_provisioning_times(
    parameters: observation.Parameters, since_s: float, stuck: bool
) -> None:
    """Invariant 8: not for ever."""
    given_ = replace(parameters, gpus=observation.GpuRoom(0, can_grow=True, provision_s=60.0))
    waits = observation.Replica("p", "p", State.UNSCHEDULABLE, 0.0, unschedulable_since_s=0.0)
    signal = observation.GatewaySignal(live_gateways=1, held=1)
    seen = observation.Observation((waits,), signal, 1)
    decision, _ = scaling.decide(seen, given_, state.ScalerState(), since_s)
    assert bool(decision.stuck_uids) is stuck
