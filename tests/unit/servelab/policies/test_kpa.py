"""Knative's decider against its own tests' figures and against a second reading of the rules."""

import dataclasses
import math
from fractions import Fraction

import hypothesis
import pytest
from hypothesis import strategies as st

from servelab.policies import buckets, kpa

T0 = 1_700_000_000
KNOBS = kpa.Knobs(target=10.0, total=15.0, target_burst_capacity=100.0)


def measured(knobs: kpa.Knobs, stable: float, panic: float, ready: int = 0) -> kpa.State:
    """A decider whose windows have these averages."""
    state = kpa.start(knobs, 0, T0)
    windows = [buckets.record(buckets.window(1000, 1), value, T0) for value in (stable, panic)]
    return dataclasses.replace(state, stable=windows[0], panic=windows[1])


def desired(knobs: kpa.Knobs, stable: float, panic: float, ready: int) -> int:
    found, _ = kpa.scale(knobs, measured(knobs, stable, panic), ready, T0)
    assert found is not None
    return found.desired


# Facts and figures of pkg/autoscaler/scaling/autoscaler_test.go (knative/serving v0.51.0).
@pytest.mark.parametrize(
    ("changes", "stable", "panic", "ready", "count"),
    [
        pytest.param({}, 0, 0, 1, 0, id="no load"),
        pytest.param({}, 50, 50, 1, 5, id="five pods' worth"),
        pytest.param({}, 50, 10, 1, 5, id="stable mode"),
        pytest.param({}, 1, 0, 1, 1, id="rest of the stable window"),
        pytest.param({}, 50, 50, 8, 5, id="decrease"),
        pytest.param({"target": 1.0, "max_scale_up_rate": 1.1}, 3, 3.1, 2, 3, id="by one at least"),
        pytest.param({"activation_scale": 2}, 0, 0, 1, 0, id="no activation without load"),
        pytest.param({"activation_scale": 2}, 1, 0, 1, 2, id="activation"),
        pytest.param({"max_scale_down_rate": 1.1}, 1, 1, 100, 90, id="down by a tenth"),
        pytest.param({"reachable": False}, 1, 1, 100, 1, id="unreachable: down at once"),
    ],
)
def test_the_count_is_that_of_its_own_tests(
    changes: dict[str, float], stable: float, panic: float, ready: int, count: int
) -> None:
    knobs = dataclasses.replace(KNOBS, **changes)  # type: ignore[arg-type]
    assert desired(knobs, stable, panic, ready) == count


def test_burst_capacity_to_spare_is_floored() -> None:
    found, _ = kpa.scale(KNOBS, measured(KNOBS, 50, 49.5), 2, T0)
    assert found is not None
    assert found.excess == math.floor(2 * 15 - 100 - 49.5)


@pytest.mark.parametrize(("capacity", "excess"), [(0, 0), (-1, -1)])
def test_without_or_with_unlimited_burst_capacity_nothing_is_worked_out(
    capacity: float, excess: int
) -> None:
    knobs = dataclasses.replace(KNOBS, target_burst_capacity=capacity)
    found, _ = kpa.scale(knobs, measured(knobs, 50, 50), 5, T0)
    assert found is not None
    assert found.excess == excess


def test_panic_starts_at_the_threshold_and_never_shrinks() -> None:
    knobs = dataclasses.replace(KNOBS, target=1.0)
    _, state = kpa.scale(knobs, measured(knobs, 11, 25), 10, T0)
    assert state.panic_since_s == T0
    calm = dataclasses.replace(measured(knobs, 5, 5), panic_since_s=T0, panic_pods=25)
    found, _ = kpa.scale(knobs, calm, 25, T0 + 30)
    assert found is not None
    assert (found.desired, found.panicking) == (25, True)


def test_panic_ends_after_more_than_a_stable_window_below_the_threshold() -> None:
    knobs = dataclasses.replace(KNOBS, target=1.0)
    state = dataclasses.replace(measured(knobs, 50, 56), panic_since_s=T0, panic_pods=90)
    kept, _ = kpa.scale(knobs, state, 55, T0 + 60)
    left, after = kpa.scale(knobs, state, 55, T0 + 62)
    assert kept is not None
    assert left is not None
    assert (kept.desired, left.desired, after.panic_since_s, after.panic_pods) == (90, 50, None, 0)


def test_a_restart_over_several_pods_starts_in_panic_and_keeps_them() -> None:
    state = kpa.record(kpa.start(KNOBS, 7, T0), 1, T0)
    found, _ = kpa.scale(KNOBS, state, 7, T0)
    assert found is not None
    assert found.desired == 7


def test_no_data_for_a_window_decides_nothing() -> None:
    state = kpa.record(kpa.start(KNOBS, 0, T0), 5, T0)
    assert kpa.scale(KNOBS, state, 1, T0 + 60)[0] is not None
    assert kpa.scale(KNOBS, state, 1, T0 + 61) == (None, state)


def test_a_scale_down_delay_keeps_the_most_of_its_window() -> None:
    # autoscaler_test.go, TestAutoscalerScaleDownDelay: 40 at 0, none after, 5 minutes.
    knobs = dataclasses.replace(KNOBS, scale_down_delay_s=300.0, panic_threshold=100.0)
    knobs = dataclasses.replace(knobs, max_scale_up_rate=10.0, max_scale_down_rate=10.0)
    state, counts = kpa.start(knobs, 0, 0), []
    for now_s, load in ((0, 40), (60, 0), (298, 0), (300, 0)):
        fresh = measured(knobs, load, load)
        state = dataclasses.replace(state, stable=fresh.stable, panic=fresh.panic)
        state = dataclasses.replace(
            state,
            stable=dataclasses.replace(state.stable, first=now_s, last=now_s),
            panic=dataclasses.replace(state.panic, first=now_s, last=now_s),
        )
        found, state = kpa.scale(knobs, state, 1, now_s)
        assert found is not None
        counts.append(found.desired)
    assert counts == [4, 4, 4, 0]


def window_average(demand: list[int], now: int, length: int) -> Fraction:
    """Seconds 0 to now have each been reported once."""
    last = demand[max(0, now - length + 1) : now + 1]
    exact = Fraction(sum(last), len(last))
    return Fraction(math.floor(exact * 10**6 + Fraction(1, 2)), 10**6)


def reading(knobs: kpa.Knobs, demand: list[int], readies: list[int]) -> list[int]:
    """The rules read a second time, from the whole history at each tick."""
    counts: list[int] = []
    panic_at: int | None = None
    peak = 0
    raw: list[int] = []
    for number, now in enumerate(range(0, len(demand), 2)):
        pods = max(1, readies[number])
        stable = window_average(demand, now, int(knobs.stable_window_s)) / int(knobs.target)
        panic = window_average(demand, now, int(knobs.panic_window_s)) / int(knobs.target)
        lowest = pods // int(knobs.max_scale_down_rate)
        highest = math.ceil(Fraction(knobs.max_scale_up_rate) * pods)
        by_stable = sorted((lowest, math.ceil(stable), highest))[1]
        by_panic = sorted((lowest, math.ceil(panic), highest))[1]
        if math.ceil(panic) >= Fraction(knobs.panic_threshold) * pods:
            panic_at = now
        elif panic_at is not None and now - panic_at > knobs.stable_window_s:
            panic_at, peak = None, 0
        if panic_at is not None:
            peak = max(peak, by_stable, by_panic)
        raw.append(by_stable if panic_at is None else peak)
        kept = max(1, math.ceil(knobs.scale_down_delay_s / 2))
        counts.append(max(raw[-kept:]))
    return counts


@hypothesis.given(st.data())
@hypothesis.settings(max_examples=60, deadline=None)
def test_a_second_reading_of_the_rules_decides_the_same(data: st.DataObject) -> None:
    knobs = kpa.Knobs(
        target=data.draw(st.sampled_from([1.0, 3.0, 7.0])),
        stable_window_s=data.draw(st.sampled_from([10.0, 30.0, 60.0])),
        panic_threshold=data.draw(st.sampled_from([1.5, 2.0, 4.0])),
        max_scale_up_rate=data.draw(st.sampled_from([1.25, 2.0, 1000.0])),
        max_scale_down_rate=data.draw(st.sampled_from([2.0, 4.0])),
        scale_down_delay_s=data.draw(st.sampled_from([0.0, 7.0, 30.0])),
    )
    phases = data.draw(st.lists(st.tuples(st.integers(1, 80), st.integers(0, 90)), max_size=6))
    demand = [load for length, load in phases for _ in range(length)]
    ready = st.integers(0, 40)
    readies = data.draw(st.lists(ready, min_size=len(demand), max_size=len(demand)))
    state, counts = kpa.start(knobs, 0, T0), []
    for second, load in enumerate(demand):
        state = kpa.record(state, load, T0 + second)
        if second % 2 == 0:
            found, state = kpa.scale(knobs, state, readies[second // 2], T0 + second)
            assert found is not None
            counts.append(found.desired)
    assert counts == reading(knobs, demand, readies)
