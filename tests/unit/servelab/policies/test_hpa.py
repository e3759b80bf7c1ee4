"""One sync of the HPA: order of the limits, bounds, zero, and a second reading of the rules."""

import dataclasses
import math
from fractions import Fraction

import hypothesis
import pytest
from hypothesis import strategies as st

from modelserve.decide import windows
from servelab.policies import hpa, hpametrics, scalingrules
from servelab.policies.decision import Reason
from servelab.policies.observation import Observation

PODS, PERCENT = windows.Unit.PODS, windows.Unit.PERCENT


def run(scaler: hpa.Hpa, demand: list[float | None], count: int = 1) -> list[int]:
    """The count after each sync."""
    state, counts = scaler.start(count, 0.0), []
    for number, load in enumerate(demand):
        decision, state = scaler.decide(Observation(count, load), state, 15.0 * number)
        count = decision.desired
        counts.append(count)
    return counts


def test_without_behavior_it_doubles_from_four_on_and_stops_at_the_maximum() -> None:
    assert run(hpa.Hpa.on_demand(1, max_replicas=20), [100] * 5) == [4, 8, 16, 20, 20]


def test_without_behavior_it_keeps_the_highest_of_five_minutes() -> None:
    counts = run(hpa.Hpa.on_demand(1), [4, *[1] * 22])
    assert counts[:21] == [4] * 21  # still counted at 300 s sharp
    assert counts[21:] == [1, 1]


def test_with_behavior_the_edge_of_a_window_no_longer_counts() -> None:
    scaler = dataclasses.replace(hpa.Hpa.on_demand(1), behavior=scalingrules.Behavior())
    assert run(scaler, [4, *[1] * 22])[:21] == [*[4] * 20, 1]


def test_rate_policies_count_from_the_start_of_their_period() -> None:
    # The documentation's example: at most 4 pods, or 10 %, a minute.
    down = windows.Direction(0, (windows.Rate(PODS, 4, 60), windows.Rate(PERCENT, 10, 60)))
    behavior = scalingrules.Behavior(down=down)
    scaler = dataclasses.replace(hpa.Hpa.on_demand(1, max_replicas=100), behavior=behavior)
    counts = run(scaler, [10] * 13, count=80)
    assert counts[::4] == [72, 64, 57, 51]
    assert counts[:4] == [72] * 4


@pytest.mark.parametrize(
    ("select", "counts"),
    [(windows.Select.MAX, [5, 10]), (windows.Select.MIN, [2, 4]), (windows.Select.DISABLED, [1])],
)
def test_the_select_policy_takes_most_least_or_nothing(
    select: windows.Select, counts: list[int]
) -> None:
    rates = (windows.Rate(PODS, 4, 15), windows.Rate(PERCENT, 100, 15))
    behavior = scalingrules.Behavior(up=windows.Direction(0, rates, select))
    scaler = dataclasses.replace(hpa.Hpa.on_demand(1), behavior=behavior)
    assert run(scaler, [30] * len(counts)) == counts


def test_a_change_outdated_one_way_gives_its_place_though_the_other_way_still_counts_it() -> None:
    up = windows.Direction(0, (windows.Rate(PODS, 10, 15),))
    down = windows.Direction(0, (windows.Rate(PODS, 0, 600),))
    behavior = scalingrules.Behavior(up, down)
    memory = scalingrules.changed(scalingrules.Memory(), behavior, 1, 4, 0.0)
    assert scalingrules.least(memory, behavior, 4, 30.0) == 1
    memory = scalingrules.changed(memory, behavior, 4, 6, 30.0)
    assert memory.ups == (scalingrules.Event(30.0, 2),)
    assert scalingrules.least(memory, behavior, 6, 30.0) == 4


def test_bounds_pass_before_any_metric() -> None:
    scaler = hpa.Hpa.on_demand(1, min_replicas=2, max_replicas=4)
    assert run(scaler, [None], count=9) == [4]
    assert run(scaler, [None], count=1) == [2]


def test_without_figures_the_count_is_held() -> None:
    assert run(hpa.Hpa.on_demand(1), [5, None, None]) == [4, 4, 4]


def test_it_wakes_from_a_zero_of_its_own_and_leaves_another_zero_alone() -> None:
    scaler = hpa.Hpa.on_demand(5, min_replicas=0)
    assert run(scaler, [0, *[0] * 20, 0, 7]) == [*[1] * 21, 0, 2]
    other = dataclasses.replace(scaler.start(1, 0.0), slept=False)
    decision, _ = scaler.decide(Observation(0, 50), other, 0.0)
    assert (decision.desired, decision.reason) == (0, Reason.DISABLED)


def test_a_metric_of_pods_cannot_wake() -> None:
    metric = hpametrics.Metric(5, hpametrics.Source.PODS)
    scaler = hpa.Hpa((metric,), min_replicas=0)
    decision, _ = scaler.decide(Observation(0, 50), scaler.start(0, 0.0), 0.0)
    assert decision.desired == 0


def test_between_two_syncs_nothing_changes() -> None:
    scaler = hpa.Hpa.on_demand(1)
    first, state = scaler.decide(Observation(1, 1), scaler.start(1, 0.0), 0.0)
    decision, after = scaler.decide(Observation(1, 90), state, 14.9)
    assert first.revisit_at_s == decision.revisit_at_s == 15.0
    assert (decision.changes, decision.reason, after) == (False, Reason.NOT_DUE, state)


def test_the_decision_tells_what_limited_it() -> None:
    scaler = hpa.Hpa.on_demand(1)
    decision, _ = scaler.decide(Observation(1, 30), scaler.start(1, 0.0), 0.0)
    assert (decision.unlimited, decision.limits) == (30, (Reason.RATE_LIMITED,))
    assert decision.message == "30 at 1 each ask for 30, RateLimited: from 1 to 4"


rates = st.builds(windows.Rate, st.sampled_from([PODS, PERCENT]), st.integers(1, 120), st.just(60))
selects = st.sampled_from(list(windows.Select))
directions = st.builds(
    windows.Direction,
    st.sampled_from([0, 30, 60, 300]),
    st.lists(rates, min_size=1, max_size=2).map(tuple),
    selects,
)


def allowed(direction: windows.Direction, start: int, current: int, sign: int) -> int:
    """What the policies of a direction make of the count at the period's start."""
    if direction.select is windows.Select.DISABLED:
        return current
    changes = []
    for rate in direction.rates:
        step = Fraction(rate.value)
        if rate.unit is PERCENT:
            step = Fraction(start) * int(rate.value) / 100
            # Upwards a part of a pod is a pod; downwards the count is cut, not the step.
            step = Fraction(math.ceil(step))
        changes.append(int(step))
    change = (max if direction.select is windows.Select.MAX else min)(changes)
    return max(current, start + change) if sign > 0 else min(current, start - change)


def reading(scaler: hpa.Hpa, demand: list[int]) -> list[int]:
    """The rules read a second time, from the whole history at each sync.

    Only for periods that are alike, so that no change is forgotten early.
    """
    behavior, (metric,) = scaler.behavior, scaler.metrics
    assert behavior is not None
    counts, wanted = [1], [1]
    for load in demand:
        now, current = len(counts) - 1, counts[-1]
        ratio = Fraction(load) / int(metric.target)
        near = current and Fraction(9, 10) <= ratio / current <= Fraction(11, 10)
        want = current if near else math.ceil(ratio)
        # wanted[0] was found at the start, wanted[n + 1] at sync n.
        ups, downs = [want], [want]
        for ago, old in ((now - max(n - 1, 0), old) for n, old in enumerate(wanted)):
            ups += [old] if 15 * ago < behavior.up.window_s else []
            downs += [old] if 15 * ago < behavior.down.window_s else []
        count = min(max(current, min(ups)), max(downs))
        start = counts[max(0, now - 3)]  # changes in the last 45 s; those 60 s ago are out
        if count > current:
            count = min(count, allowed(behavior.up, start, current, 1), scaler.max_replicas)
        elif count < current:
            count = max(count, allowed(behavior.down, start, current, -1), scaler.min_replicas)
        counts.append(count)
        wanted.append(want)
    return counts[1:]


@hypothesis.given(
    directions,
    directions,
    st.lists(st.tuples(st.integers(1, 12), st.integers(0, 200)), max_size=8),
    st.sampled_from([0, 1]),
)
@hypothesis.settings(max_examples=150, deadline=None)
def test_a_second_reading_of_the_rules_decides_the_same(
    up: windows.Direction, down: windows.Direction, phases: list[tuple[int, int]], least: int
) -> None:
    scaler = dataclasses.replace(
        hpa.Hpa.on_demand(4, min_replicas=least, max_replicas=40),
        behavior=scalingrules.Behavior(up, down),
    )
    demand = [load for length, load in phases for _ in range(length)]
    assert run(scaler, [*demand]) == reading(scaler, demand)
