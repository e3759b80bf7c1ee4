"""Invariants 11 and 12: restarts, noise and clocks leave the count as it is."""

import random
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from modelserve.api import spec as api
from modelserve.decide import observation

# The plant's class lives in conftest.py, which no test can import by name.
Plants = Any

FEW = settings(max_examples=12, deadline=None)


def steadily(rate_per_s: float, until_s: float) -> list[float]:
    return [i / rate_per_s for i in range(int(rate_per_s * until_s))]


@given(
    seed=st.integers(0, 10_000),
    tolerance=st.sampled_from([0.0, 0.1]),
    every_s=st.sampled_from([0.0, 20.0, 45.0, 90.0]),
    policy=st.sampled_from(list(api.Policy)),
)
@FEW
def test_noise_of_a_tenth_writes_at_most_once_a_window(
    plant: Plants,
    parameters: observation.Parameters,
    seed: int,
    tolerance: float,
    every_s: float,
    policy: api.Policy,
) -> None:
    """Invariant 12: around a load of three replicas to the dot, so that noise is felt.

    The noise is in each gap, or in the rate for a while. Within the tolerance nothing is written.
    """
    given_ = replace(parameters, policy=policy, tolerance=tolerance)
    rate_per_s = 3 * given_.slots * given_.utilization / given_.service_s
    run = plant(given_, noisy(seed, rate_per_s, every_s, 1500), step_s=1).run(1500)
    settled = [write_s for write_s, _ in run.writes if write_s > 700]
    assert len(settled) <= 800 / given_.down.window_s
    if tolerance and policy is api.Policy.COMMITTED:
        assert len(settled) <= 2


def noisy(seed: int, rate_per_s: float, every_s: float, until_s: float) -> list[float]:
    """Arrivals whose rate is up to a tenth off, anew for each or every so often."""
    noise = random.Random(seed)
    at_s, arrivals, factor, until_next_s = 0.0, [], 1.0, 0.0
    while at_s < until_s:
        if at_s >= until_next_s:
            factor, until_next_s = noise.uniform(0.9, 1.1), at_s + every_s
        at_s += factor / rate_per_s
        arrivals.append(at_s)
    return arrivals


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


@given(at_s=st.integers(30, 880), away_s=st.integers(0, 30), again_s=st.integers(0, 80))
@FEW
def test_an_operator_restart_does_not_dip_the_count(
    plant: Plants, parameters: observation.Parameters, at_s: int, away_s: int, again_s: int
) -> None:
    """Invariant 11: under steady traffic, in a cold start, as it ends; once, and once more."""
    run = plant(parameters, steadily(2, 900), step_s=1).run(at_s)
    count = run.count
    run.away(at_s + away_s)
    run.restart_operator()
    run.run(at_s + away_s + min(again_s, 59))
    run.restart_operator()
    run.run(run.now_s + 59)
    assert min([n for t, n in run.writes if t > at_s], default=count) >= count
