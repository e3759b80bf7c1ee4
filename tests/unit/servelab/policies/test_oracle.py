"""The oracle has what is needed when it is needed; the fixed count does not care."""

import hypothesis
import pytest
from hypothesis import strategies as st

from servelab.policies import fixed, oracle
from servelab.policies.observation import Observation

requests = st.lists(st.tuples(st.integers(0, 200), st.integers(1, 60)), max_size=40).map(
    lambda pairs: sorted((float(at_s), float(for_s)) for at_s, for_s in pairs)
)


def open_at(trace: list[tuple[float, float]], now_s: float) -> int:
    return sum(at_s <= now_s < at_s + for_s for at_s, for_s in trace)


@hypothesis.given(requests, st.integers(1, 4), st.integers(0, 260))
def test_needs_are_the_open_requests_over_the_slots(
    trace: list[tuple[float, float]], slots: int, now_s: int
) -> None:
    needs = oracle.needs(trace, slots=slots)
    assert needs.most(now_s, now_s) == -(-open_at(trace, now_s) // slots)


def test_a_span_takes_in_both_of_its_ends() -> None:
    needs = oracle.Needs((10.0, 20.0, 30.0), (1, 3, 0))
    spans = [(0, 9), (0, 10), (12, 19), (12, 20), (30, 99), (25, 40)]
    assert [needs.most(*span) for span in spans] == [0, 1, 1, 3, 0, 3]


def counts(policy: oracle.Oracle, times: list[float]) -> list[int]:
    return [policy.decide(Observation(0, 0.0), None, now_s)[0].desired for now_s in times]


def test_it_orders_a_cold_start_ahead_and_bridges_gaps_that_are_shorter() -> None:
    needs = oracle.Needs((100.0, 110.0, 160.0, 170.0, 400.0, 410.0), (2, 0, 1, 0, 1, 0))
    policy = oracle.Oracle(needs, 60.0)
    assert counts(policy, [39, 40, 110, 171, 339, 340]) == [0, 2, 1, 0, 0, 1]


def test_it_asks_to_be_called_whenever_the_answer_may_change() -> None:
    needs = oracle.Needs((100.0, 110.0), (2, 0))
    policy, now_s, called = oracle.Oracle(needs, 60.0), 0.0, []
    while True:
        decision, _ = policy.decide(Observation(0, 0.0), None, now_s)
        called.append((now_s, decision.desired))
        if decision.revisit_at_s is None:
            break
        now_s = decision.revisit_at_s
    assert called == [(0, 0), (40, 2), (50, 2), (100, 2), (110, 0)]


def test_bounds_hold() -> None:
    needs = oracle.Needs((0.0,), (9,))
    assert counts(oracle.Oracle(needs, 1.0, 2, 4), [0, -50]) == [4, 2]


def test_it_is_never_called_back_at_the_same_instant() -> None:
    needs = oracle.Needs((1e9 + 0.3,), (1,))
    decision, _ = oracle.Oracle(needs, 0.1).decide(Observation(0, 0.0), None, 1e9 + 0.2)
    assert decision.revisit_at_s is not None
    assert decision.revisit_at_s > 1e9 + 0.2


@pytest.mark.parametrize("count", [0, 3])
def test_a_fixed_count_is_fixed(count: int) -> None:
    decision, state = fixed.Fixed(count).decide(Observation(1, 500.0), None, 0.0)
    assert (decision.desired, state, decision.revisit_at_s) == (count, None, None)
