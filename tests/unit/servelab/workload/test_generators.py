"""Drawn traffic has the rate, the spread and the spells that were asked for, and is repeatable."""

import random
import statistics
from itertools import pairwise

import pytest

from servelab.workload import generators


def rng(seed: int = 0) -> random.Random:
    return random.Random(seed)


def test_poisson_has_its_rate_and_a_variation_of_one() -> None:
    times_s = list(generators.poisson(5, 2000, rng()))
    gaps_s = [b - a for a, b in pairwise(times_s)]
    assert len(times_s) / 2000 == pytest.approx(5, rel=0.03)
    assert statistics.stdev(gaps_s) / statistics.fmean(gaps_s) == pytest.approx(1, rel=0.05)


@pytest.mark.parametrize("cv", [0.3, 3.0])
def test_gamma_has_its_coefficient_of_variation(cv: float) -> None:
    gaps_s = [b - a for a, b in pairwise(generators.gamma(5, cv, 8000, rng()))]
    assert 1 / statistics.fmean(gaps_s) == pytest.approx(5, rel=0.1)
    assert statistics.stdev(gaps_s) / statistics.fmean(gaps_s) == pytest.approx(cv, rel=0.1)


def test_on_off_is_silent_when_off() -> None:
    times_s = list(generators.on_off(5, 10, 20, 300, rng()))
    assert times_s == sorted(times_s)
    assert all(at_s % 30 < 10 for at_s in times_s)


def test_a_ramp_goes_from_one_rate_to_the_other() -> None:
    times_s = list(generators.ramp(1, 9, 4000, rng()))
    early = sum(at_s < 1000 for at_s in times_s)
    late = sum(at_s >= 3000 for at_s in times_s)
    assert late / early == pytest.approx(8 / 2, rel=0.1)


def test_steady_is_even() -> None:
    assert list(generators.steady(4, 1)) == [0, 0.25, 0.5, 0.75]


def test_lengths_have_their_median_and_percentile() -> None:
    lengths = generators.Lengths(100, 400, 2000)
    drawn = sorted(lengths.draw(rng(seed)) for seed in range(4000))
    assert drawn[2000] == pytest.approx(100, rel=0.1)
    assert drawn[3800] == pytest.approx(400, rel=0.15)
    assert drawn[-1] <= 2000


def test_equal_seeds_draw_equal_traffic() -> None:
    drawn = [
        list(
            generators.with_lengths(
                generators.poisson(2, 50, rng(7)),
                generators.Lengths(100, 300),
                generators.Lengths(10),
                rng(8),
            )
        )
        for _ in range(2)
    ]
    assert drawn[0] == drawn[1]
