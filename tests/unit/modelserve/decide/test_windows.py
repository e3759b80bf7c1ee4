"""Windows and rates as the HorizontalPodAutoscaler has them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelserve.decide import windows

PERCENT, PODS = windows.Unit.PERCENT, windows.Unit.PODS
DOUBLE_OR_FOUR = windows.Direction(
    0, (windows.Rate(PERCENT, 100, 15), windows.Rate(PODS, 4, 15)), windows.Select.MAX
)


def recommended(*entries: tuple[float, int]) -> windows.Recommendations:
    return tuple(windows.Recommended(at_s, count) for at_s, count in entries)


@pytest.mark.parametrize(
    ("current", "count", "past", "expected"),
    [
        pytest.param(3, 1, [(50, 3)], 3, id="down waits for the greatest in its window"),
        pytest.param(3, 1, [(30, 3)], 1, id="down goes once the greatest has left it"),
        pytest.param(3, 1, [(50, 2)], 2, id="down goes part of the way"),
        pytest.param(3, 5, [(95, 4)], 4, id="up waits for the least in its window"),
        pytest.param(3, 5, [(85, 4)], 5, id="up goes once the least has left it"),
        pytest.param(3, 5, [(95, 2)], 3, id="up never becomes down"),
    ],
)
def test_the_count_stays_between_the_windows(
    current: int, count: int, past: list[tuple[float, int]], expected: int
) -> None:
    moved = windows.stabilize(
        current, count, recommended(*past), 100, up_window_s=10, down_window_s=60
    )
    assert moved == expected


@given(
    st.lists(
        st.tuples(st.floats(0.1, 20), st.integers(0, 5)),
        min_size=1,
        max_size=40,
    ),
    st.integers(0, 5),
)
def test_what_is_forgotten_between_two_bounds_changes_no_window(
    moves: list[tuple[float, int]], current: int
) -> None:
    now_s, kept = 0.0, ()
    everything: list[tuple[float, float, int]] = []  # from, to, count
    pruned: windows.Recommendations = kept
    for gap_s, count in moves:
        now_s += gap_s
        if everything:
            everything[-1] = (everything[-1][0], now_s, everything[-1][2])
        everything.append((now_s, now_s, count))
        pruned = windows.record_held(pruned, count, now_s, 60)
        full = recommended(*((to_s, c) for _, to_s, c in everything))
        for window_s in (0, 5, 30, 60):
            assert windows.stabilize(
                current, count, pruned, now_s, up_window_s=window_s, down_window_s=window_s
            ) == windows.stabilize(
                current, count, full, now_s, up_window_s=window_s, down_window_s=window_s
            )
    assert len(pruned) <= 12


def test_a_recommendation_stays_in_force_until_the_next_one() -> None:
    past = windows.record_held(recommended((0, 5)), 1, 1000, 60)
    assert windows.stabilize(5, 1, past, 1000, up_window_s=0, down_window_s=60) == 5
    assert windows.next_expiry_s(past, 1, 60) == 1060


@pytest.mark.parametrize(
    ("current", "steps", "expected"),
    [
        pytest.param(1, [], 5, id="four pods beat doubling from one"),
        pytest.param(10, [], 20, id="doubling beats four pods from ten"),
        pytest.param(5, [(90, 4)], 5, id="what was added in the period counts"),
        pytest.param(5, [(80, 4)], 10, id="what was added before it does not"),
        pytest.param(3, [(90, -2)], 10, id="what was taken away is given back"),
    ],
)
def test_growth_is_limited_against_the_periods_start(
    current: int, steps: list[tuple[float, int]], expected: int
) -> None:
    taken = tuple(windows.Step(at_s, change) for at_s, change in steps)
    assert windows.limit_up(current, taken, DOUBLE_OR_FOUR, 100) == expected


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        pytest.param(windows.Select.MAX, 5, id="the most permissive"),
        pytest.param(windows.Select.MIN, 8, id="the least permissive"),
        pytest.param(windows.Select.DISABLED, 10, id="none"),
    ],
)
def test_shrinking_takes_the_selected_rate(select: windows.Select, expected: int) -> None:
    rates = (windows.Rate(PERCENT, 50, 15), windows.Rate(PODS, 2, 15))
    direction = windows.Direction(0, rates, select)
    assert windows.limit_down(10, (), direction, 100) == expected


def test_without_rates_nothing_limits_a_step() -> None:
    assert windows.limit_down(10, (), windows.Direction(), 0) == 0
    assert windows.limit_up(10, (), windows.Direction(), 0) > 1_000_000


def test_the_next_rate_change_is_when_the_oldest_step_leaves_its_period() -> None:
    steps = (windows.Step(10, 1), windows.Step(12, 1))
    assert windows.next_rate_s(steps, DOUBLE_OR_FOUR, 20) == 25
    assert windows.next_rate_s(steps, DOUBLE_OR_FOUR, 30) is None
