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


@pytest.mark.parametrize(
    "window",
    [
        pytest.param(generators.Window(600, 0.5, 1 / 16), id="gamma in bursts"),
        pytest.param(generators.Window(600, 0.5, 0.5, generators.GapLaw.WEIBULL), id="weibull"),
    ],
)
def test_windows_have_their_rate_however_bursty_they_are(window: generators.Window) -> None:
    count = sum(1 for _ in generators.windowed([window] * 400, rng()))
    assert count == pytest.approx(400 * 300, rel=0.05)


def test_a_window_without_a_rate_is_silent() -> None:
    loud, silent = generators.Window(100, 5), generators.Window(50, 0)
    times_s = list(generators.windowed([loud, silent, loud], rng()))
    assert times_s == sorted(times_s)
    assert not [at_s for at_s in times_s if 100 <= at_s < 150]
    assert max(times_s) > 200


def test_windows_are_cut_in_the_middle_of_one() -> None:
    found = list(generators.cut([generators.Window(100, 1), generators.Window(100, 2)], 150))
    assert [(each.length_s, each.per_s) for each in found] == [(100, 1), (50, 2)]


def test_lengths_follow_their_quantiles_and_stay_between_the_ends() -> None:
    law = generators.Quantiles(((0.05, 10.0), (0.5, 100.0), (0.95, 1000.0)))
    one = rng()
    drawn = sorted(law.draw(one) for _ in range(8000))
    assert (drawn[0], drawn[-1]) == (10, 1000)
    assert drawn[4000] == pytest.approx(100, rel=0.2)
