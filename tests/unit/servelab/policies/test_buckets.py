"""Knative's window averages against sums over the whole history."""

import itertools
from fractions import Fraction

import hypothesis
import pytest
from hypothesis import strategies as st

from servelab.policies import buckets

# (seconds since the one before, value)
records = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 200)), min_size=1, max_size=60)


def filled(window_s: float, values: list[tuple[float, float]]) -> buckets.Window:
    window = buckets.window(window_s, 1.0)
    for now_s, value in values:
        window = buckets.record(window, value, now_s)
    return window


def expected(history: list[tuple[int, int]], window_s: int, now_s: int) -> Fraction:
    """The rule read anew: the mean over the window's seconds up to the last report.

    A pause of a window or more starts the history anew.
    """
    started = history[0][0]
    for (before_s, _), (at_s, _) in itertools.pairwise(history):
        if at_s - before_s >= window_s:
            started = at_s
    last = history[-1][0]
    if now_s - last >= window_s:
        return Fraction(0)
    first = max(started, now_s - window_s + 1)
    total = sum(value for at_s, value in history if at_s >= first)
    return Fraction(total, min(last - started + 1, last - (now_s - window_s)))


@hypothesis.given(records, st.sampled_from([3, 6, 30, 60]), st.integers(0, 70))
def test_the_average_is_that_of_the_seconds_in_the_window(
    steps: list[tuple[int, int]], window_s: int, wait_s: int
) -> None:
    now_s, history = 1_700_000_000, []
    for step_s, value in steps:
        now_s += step_s
        history.append((now_s, value))
    got = buckets.average(filled(window_s, [*history]), now_s + wait_s)
    assert got == pytest.approx(float(expected(history, window_s, now_s + wait_s)), abs=1e-6)


def test_the_average_over_a_window_that_is_not_full_yet_is_over_what_there_is() -> None:
    window = filled(60, [(0, 10), (1, 20), (2, 30)])
    assert buckets.average(window, 2) == 20


def test_seconds_without_a_report_at_the_end_shorten_the_window() -> None:
    window = filled(4, [(0, 4), (1, 8), (2, 12), (3, 16)])
    assert [buckets.average(window, now_s) for now_s in (3, 4, 5, 6, 7)] == [10, 12, 14, 16, 0]


def test_a_gap_inside_counts_as_zero() -> None:
    assert buckets.average(filled(60, [(0, 10), (4, 10)]), 4) == 4


def test_values_of_one_second_add_up() -> None:
    assert buckets.average(filled(6, [(3.1, 10), (3.9, 5)]), 3.95) == 15


def test_a_late_value_counts_within_the_window_and_not_before_it() -> None:
    window = filled(6, [(10, 12), (7, 12)])
    assert buckets.average(window, 10) == 6
    assert buckets.record(window, 1000, 4) == window


def test_a_window_is_empty_only_after_more_than_its_length() -> None:
    window = filled(6, [(10, 1)])
    assert [buckets.empty(window, now_s) for now_s in (16, 17)] == [False, True]
    assert buckets.empty(buckets.window(6, 1), 0)


def test_averages_are_rounded_half_away_from_zero_to_six_digits() -> None:
    assert buckets.average(filled(60, [(0, 0.0000005)]), 0) == 0.000001
    assert buckets.average(filled(60, [(0, 20), *((t, 0) for t in range(1, 3))]), 2) == 6.666667


@hypothesis.given(records, st.sampled_from([1, 2, 30, 45]))
def test_the_greatest_is_that_of_the_buckets_in_the_window(
    steps: list[tuple[int, int]], window_s: int
) -> None:
    now_s, history, window = 1_700_000_000, [], buckets.maximum(window_s, 2)
    for step_s, value in steps:
        now_s += step_s
        history.append((now_s // 2, value))
        window = buckets.record_maximum(window, value, now_s)
        oldest = now_s // 2 - window.buckets
        # One at the same time can only be outdone by what is greater.
        assert buckets.greatest(window) == max(value for at, value in history if at > oldest)
