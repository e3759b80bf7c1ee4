"""A front holds what nothing beats, and nothing else."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.report import front

POINTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30)


@given(POINTS)
def test_each_point_is_beaten_or_equalled_by_one_of_the_front(
    points: list[tuple[float, float]],
) -> None:
    best = [points[n] for n in front.front(points)]
    assert all(any(x <= px and y <= py for x, y in best) for px, py in points)


@given(POINTS)
def test_none_of_the_front_beats_another(points: list[tuple[float, float]]) -> None:
    best = [points[n] for n in front.front(points)]
    assert best == sorted(best)
    assert len({x for x, _ in best}) == len({y for _, y in best}) == len(best)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_no_number_is_left_out(bad: float) -> None:
    assert front.front([(bad, 1), (1, bad), (2, 2)]) == [2]
