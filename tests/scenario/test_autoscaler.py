"""The autoscaler's invariants, each a property in virtual time against a small plant."""

import math
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelserve.api import spec as api
from modelserve.decide import observation, record, windows

# The plant's class lives in conftest.py, which no test can import by name.
Plants = Any

State = observation.ReplicaState
FEW = settings(max_examples=8, deadline=None)


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


@given(cold_start_s=st.floats(5, 400))
@FEW
def test_starting_replicas_never_cause_growth(
    plant: Plants, parameters: observation.Parameters, cold_start_s: float
) -> None:
    """Invariant 1: a burst that is held through a whole cold start orders all it needs at once."""
    given_ = replace(parameters, cold_start_s=cold_start_s)
    run = plant(given_, [0.0] * 60, cold_start_s=cold_start_s).run(cold_start_s - 1)
    ordered_at_s = [at_s for at_s, _ in run.writes]
    assert ordered_at_s[-1] <= 31


@given(
    at_s=st.floats(0, 2000),
    restart_s=st.floats(0, 2000),
    policy=st.sampled_from(list(api.Policy)),
    mode=st.sampled_from([api.Mode.AUTO, api.Mode.SCALE_UP_ONLY]),
    target=st.floats(1, 500),
    utilization=st.floats(0.01, 1),
)
@FEW
def test_one_held_request_always_wakes_the_model(
    plant: Plants,
    parameters: observation.Parameters,
    at_s: float,
    restart_s: float,
    policy: api.Policy,
    mode: api.Mode,
    target: float,
    utilization: float,
) -> None:
    """Invariant 3, with any rounding and an operator restart at any time."""
    given_ = replace(
        parameters,
        policy=policy,
        mode=mode,
        target_queue_depth=target,
        utilization=utilization,
        tolerance=1.0,
        up=windows.Direction(3600.0, (windows.Rate(windows.Unit.PERCENT, 1, 1800),)),
    )
    run = plant(given_, [at_s], step_s=2.0).run(min(restart_s, at_s + 50))
    run.restart_operator()
    run.run(at_s + 150)
    assert len(run.waits_s) == 1
    assert run.waits_s[0] <= parameters.cold_start_s + 4


BAD_VALUES = [None, math.nan, math.inf, -math.inf, -1.0, 1e300]


@pytest.mark.parametrize("value", BAD_VALUES)
def test_odd_engine_figures_never_shrink_and_recover(
    plant: Plants, parameters: observation.Parameters, value: float | None
) -> None:
    """Invariant 6, engines: traffic ends just as the figures go bad."""

    def distort(seen: observation.Observation, now_s: float) -> observation.Observation:
        if now_s < 400:
            return seen
        odd = tuple(replace(r, waiting=value, running=value) for r in seen.replicas)
        return replace(seen, replicas=odd)

    run = plant(parameters, steadily(2, 400), distort=distort).run(400)
    count = run.count
    run.run(2000)
    assert run.count == count > 1
    assert not run.decisions[-1].signal_ok
    run.distort = lambda seen, now_s: seen
    run.run(2100)
    assert run.decisions[-1].signal_ok
    assert run.count == 0


def test_silent_gateways_never_shrink(plant: Plants, parameters: observation.Parameters) -> None:
    """Invariant 6, gateways: none live is no signal, whatever their last figures were."""

    def distort(seen: observation.Observation, now_s: float) -> observation.Observation:
        return replace(seen, signal=observation.GatewaySignal()) if now_s >= 400 else seen

    run = plant(parameters, steadily(2, 400), distort=distort).run(400)
    count = run.count
    run.run(2000)
    assert run.count == count > 1
    assert record.Reason.NO_SIGNAL in run.decisions[-1].limits


@given(
    load=st.integers(0, 1000),
    waiting=st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True)),
    count=st.integers(1, 5),
)
@FEW
def test_terminating_pods_change_nothing(
    plant: Plants,
    parameters: observation.Parameters,
    load: int,
    waiting: float | None,
    count: int,
) -> None:
    """Invariant 7: two plants, the second with the figures of pods on their way out."""
    ghosts = tuple(
        observation.Replica(
            f"ghost-{i}", "", State.TERMINATING, 0.0, in_flight=load, waiting=waiting, running=3.0
        )
        for i in range(count)
    )

    def distort(seen: observation.Observation, now_s: float) -> observation.Observation:
        return replace(seen, replicas=(*seen.replicas, *ghosts))

    without = plant(parameters, steadily(1, 100), step_s=1).run(700)
    beside = plant(parameters, steadily(1, 100), step_s=1, distort=distort).run(700)
    assert beside.writes == without.writes


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


@given(seed=st.integers(0, 10_000))
@FEW
def test_noise_of_a_tenth_writes_at_most_once_a_window(
    plant: Plants, parameters: observation.Parameters, seed: int
) -> None:
    """Invariant 12, under both policies once the load is settled."""
    noise = random.Random(seed)
    for policy in api.Policy:
        given_ = replace(parameters, policy=policy)
        at_s, arrivals = 0.0, []
        while at_s < 1500:
            at_s += 0.5 * noise.uniform(0.9, 1.1)
            arrivals.append(at_s)
        run = plant(given_, arrivals, step_s=1).run(1500)
        settled = [write_s for write_s, _ in run.writes if write_s > 700]
        assert len(settled) <= 800 / given_.down.window_s


@given(jump_s=st.floats(-1e6, 1e6))
@FEW
def test_where_the_clock_starts_changes_nothing(
    plant: Plants, parameters: observation.Parameters, jump_s: float
) -> None:
    """Invariant 12: instants mean nothing, only the time between them."""
    offset = round(jump_s)
    here = plant(parameters, steadily(1, 60), step_s=1).run(900)
    there = plant(
        parameters, [t + offset for t in steadily(1, 60)], step_s=1, now_s=float(offset)
    ).run(offset + 900)
    assert [(t - offset, n) for t, n in there.writes] == here.writes


def test_an_operator_restart_does_not_dip_the_count(
    plant: Plants, parameters: observation.Parameters
) -> None:
    """Invariant 11: in the middle of steady traffic, and of a cold start."""
    for at_s in (45, 400):
        run = plant(parameters, steadily(2, 900)).run(at_s)
        count = run.count
        run.restart_operator()
        run.run(at_s + 59)
        assert min([n for t, n in run.writes if t > at_s], default=count) >= count


def test_two_a_second_for_a_quarter_of_an_hour_costs_a_fraction_of_queue_depth(
    plant: Plants, parameters: observation.Parameters
) -> None:
    """The design's table, row "2 req/s for 15 min from idle", 90 s of cold start."""
    committed = plant(parameters, steadily(2, 900)).run(1600)
    by_depth = replace(parameters, policy=api.Policy.QUEUE_DEPTH)
    queue_depth = plant(by_depth, steadily(2, 900)).run(1600)
    assert committed.peak <= 12
    assert committed.pod_s / 60 < 90
    assert queue_depth.peak > 2 * committed.peak
    assert len(committed.waits_s) == 1800
    assert committed.count == queue_depth.count == 0


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_a_cold_start_estimated_wrong_is_harmless(
    plant: Plants, parameters: observation.Parameters, factor: float
) -> None:
    given_ = replace(parameters, cold_start_s=90 * factor)
    run = plant(given_, steadily(2, 900)).run(1900)
    assert run.peak <= 16
    assert len(run.waits_s) == 1800


@given(rate_per_s=st.floats(0.02, 3), busy_s=st.floats(10, 300), spare=st.integers(0, 2))
@FEW
def test_deciding_only_when_asked_gives_what_deciding_all_the_time_does(
    plant: Plants, parameters: observation.Parameters, rate_per_s: float, busy_s: float, spare: int
) -> None:
    arrivals = steadily(rate_per_s, busy_s) or [0.0]
    given_ = replace(parameters, buffer_replicas=spare)
    eager = plant(given_, arrivals).run(2000)
    lazy = plant(given_, arrivals, lazy=True).run(2000)
    assert len(lazy.waits_s) == len(eager.waits_s) == len(arrivals)
    assert lazy.count == eager.count == 0
    assert abs(lazy.writes[-1][0] - eager.writes[-1][0]) <= 1
    assert lazy.pod_s <= eager.pod_s * 1.02 + 30
    assert len(lazy.decisions) < len(eager.decisions) / 2
