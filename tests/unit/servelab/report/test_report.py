"""Figures and charts."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.report import chart, figures


@pytest.mark.parametrize(("q", "value"), [(0.0, 1.0), (0.5, 2.0), (0.75, 2.5), (1.0, 3.0)])
def test_percentiles_are_interpolated(q: float, value: float) -> None:
    assert figures.percentile([3.0, 1.0, 2.0], q) == value


def test_there_is_no_percentile_of_nothing() -> None:
    assert math.isnan(figures.percentile([], 0.5))


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 1))
def test_a_percentile_lies_between_the_extremes(values: list[float], q: float) -> None:
    assert min(values) <= figures.percentile(values, q) <= max(values) * (1 + 1e-9)


def test_the_area_is_that_of_the_steps_up_to_the_end() -> None:
    assert figures.area([(0.0, 1.0), (10.0, 3.0), (20.0, 0.0)], 15.0) == 25.0


def test_a_chart_shows_a_peak_shorter_than_a_column() -> None:
    drawn = chart.steps([(0.0, 1.0), (50.0, 3.0), (50.1, 1.0)], 100.0, width=10, label="replicas")
    assert drawn.splitlines()[:4] == [
        "replicas",
        "   3 |     #",
        "   2 |     #",
        "   1 |##########",
    ]


def test_a_chart_of_nothing_says_so() -> None:
    assert chart.steps([], 10.0, label="a model") == "a model: nothing to show"
