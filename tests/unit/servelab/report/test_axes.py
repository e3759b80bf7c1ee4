"""Axes mark round values within their bounds, and put values where they belong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.report import axes


@given(st.floats(1e-6, 1e9))
def test_ticks_are_few_and_within_the_axis(most: float) -> None:
    ticks = axes.even(most, 0, 100).ticks()
    assert 2 <= len(ticks) <= 8
    assert 0 == ticks[0] < ticks[-1] <= most * (1 + 1e-6)


@given(st.lists(st.floats(1e-6, 1e6), max_size=5))
def test_an_axis_of_powers_has_a_tick_and_holds_its_values(values: list[float]) -> None:
    axis = axes.powers(values, 0, 100)
    assert axis.ticks()
    assert all(axis.low <= value <= axis.high for value in values)


def test_whole_numbers_have_whole_ticks() -> None:
    assert list(axes.even(2, 0, 100, whole=True).ticks()) == [0, 1, 2]


@pytest.mark.parametrize(("value", "at"), [(1, 0), (10, 50), (100, 100), (1000, 100), (0.1, 0)])
def test_powers_of_ten_are_equally_far_apart(value: float, at: float) -> None:
    assert axes.Axis(1, 100, 0, 100, log=True).at(value) == at


@pytest.mark.parametrize(("value", "text"), [(0.05, "0.05"), (2, "2"), (1500, "1500")])
def test_labels_are_short(value: float, text: str) -> None:
    assert axes.label(value) == text
