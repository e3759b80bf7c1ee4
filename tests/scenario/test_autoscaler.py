"""The autoscaler in whole runs on a small plant, in virtual time; its invariants stand beside."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelserve.api import spec as api
from modelserve.decide import observation

# The plant's class lives in conftest.py, which no test can import by name.
Plants = Any

FEW = settings(max_examples=8, deadline=None)


def steadily(rate_per_s: float, until_s: float) -> list[float]:
    return [i / rate_per_s for i in range(int(rate_per_s * until_s))]


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


@given(cold_start_s=st.floats(5, 400), headroom=st.floats(0.1, 1.0), spare=st.integers(0, 2))
@FEW
def test_headroom_for_bursts_takes_no_cold_start_for_one(
    plant: Plants,
    parameters: observation.Parameters,
    cold_start_s: float,
    headroom: float,
    spare: int,
) -> None:
    """Invariant 1: what piled up because replicas were starting orders no more of them."""
    plain = replace(parameters, cold_start_s=cold_start_s, buffer_replicas=spare)
    roomy = replace(plain, burst_headroom=headroom)
    peaks = [
        plant(each, steadily(2, 900), cold_start_s=cold_start_s, step_s=1).run(1600).peak
        for each in (plain, roomy)
    ]
    # Room for all at once, and for chance: the load has some twenty in service.
    assert peaks[1] <= max(peaks[0], 4 + spare)


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
