"""All policies by name, driven through the one shape that they share."""

import dataclasses
import itertools
import random

import hypothesis
import pytest
from hypothesis import strategies as st

from modelserve import errors
from servelab.policies import registry
from servelab.policies.decision import Decision
from servelab.policies.observation import Observation, Pod

SIZING = registry.Sizing(target=8.0, slots=10, min_replicas=0, max_replicas=12)
NAMES = [*registry.names()[:-1], "fixed-3"]


def drive(
    name: str,
    loads: list[float | None],
    count: int,
    cold_s: float,
    sizing: registry.Sizing = SIZING,
) -> list[Decision]:
    """Call a policy as a driver does; each load lasts a minute, pods take ``cold_s`` to serve."""
    policy = registry.of(name, sizing)
    now_s, ready_s = 0.0, [0.0] * count
    state, decisions = policy.start(count, now_s), []
    while now_s < 60 * len(loads):
        load = loads[int(now_s // 60)]
        ready = sum(at_s <= now_s for at_s in ready_s)
        share = None if load is None or not ready else load / ready
        pods = tuple(
            Pod(f"p{n}", at_s <= now_s, share if at_s <= now_s else None)
            for n, at_s in enumerate(ready_s)
        )
        held = 0.0 if ready or load is None else load
        seen = Observation(len(ready_s), load, pods, held, held)
        decision, state = policy.decide(seen, state, now_s)
        decisions.append(decision)
        ready_s = [*ready_s, *[now_s + cold_s] * decision.desired][: decision.desired]
        due_s = decision.revisit_at_s
        assert due_s is None or due_s > now_s
        now_s = min(due_s or now_s + 60, now_s + 60)
    return decisions


@pytest.mark.parametrize("name", NAMES)
def test_a_steady_load_is_carried_in_the_end(name: str) -> None:
    last = drive(name, [30.0] * 30, 1, 20.0)[-1]
    assert 1 <= last.desired <= 12
    # AIBrix multiplies the count with a mean of three minutes, and swings with it.
    if not name.startswith("aibrix"):
        assert 3 <= last.desired <= 4


@pytest.mark.parametrize("name", NAMES)
@hypothesis.given(
    st.lists(st.none() | st.sampled_from([0.0, 0.3, 5.0, 40.0, 500.0]), min_size=1, max_size=8),
    st.integers(0, 12),
    st.sampled_from([0.0, 30.0, 200.0]),
)
@hypothesis.settings(max_examples=15, deadline=None)
def test_counts_stay_in_bounds_and_equal_input_gives_equal_decisions(
    name: str, loads: list[float | None], count: int, cold_s: float
) -> None:
    decisions = drive(name, loads, count, cold_s)
    assert all(0 <= decision.desired <= 12 for decision in decisions)
    for before, after in itertools.pairwise(decisions):
        assert after.current == before.desired
    assert decisions == drive(name, loads, count, cold_s)
    assert all(decision.message for decision in decisions)


@pytest.mark.parametrize("name", ["keda", "knative", "kubeai", "ray-serve", "hpa"])
def test_load_wakes_from_zero_and_idleness_ends_there(name: str) -> None:
    decisions = drive(name, [*[0.0] * 3, *[20.0] * 10, *[0.0] * 50], 0, 30.0)
    assert max(decision.desired for decision in decisions) >= 2
    assert decisions[-1].desired == 0


@pytest.mark.parametrize("name", NAMES[:-1])
def test_what_a_spec_says_of_shrinking_counts_for_all(name: str) -> None:
    told = dataclasses.replace(SIZING, down_window_s=20.0, cooldown_s=40.0)
    fields = dataclasses.asdict(registry.of(name, told))  # type: ignore[call-overload]
    given = str(fields)
    assert "20.0" in given
    assert ("40.0" in given) == (name in ("keda", "knative", "ray-serve"))


def test_a_shorter_window_shrinks_sooner() -> None:
    loads: list[float | None] = [60.0, 0.0, 0.0, 0.0]
    quick = dataclasses.replace(SIZING, down_window_s=30.0)
    assert max(drive("hpa", loads, 3, 0.0), key=lambda d: d.desired).desired == 8
    assert drive("hpa", loads, 3, 0.0)[-1].desired == 8
    assert drive("hpa", loads, 3, 0.0, quick)[-1].desired == 0


@pytest.mark.parametrize("name", ["", "hpa2", "fixed-", "fixed--1", "fixed-1e3", "fixed-99999999"])
def test_an_unknown_name_is_told_with_those_there_are(name: str) -> None:
    with pytest.raises(errors.InputError, match="fixed-N"):
        registry.of(name, SIZING)


def test_calls_between_ticks_change_nothing_that_counts() -> None:
    rng = random.Random(7)
    policy = registry.of("hpa", SIZING)
    state = policy.start(2, 0.0)
    _, state = policy.decide(Observation(2, 10.0), state, 0.0)
    for _ in range(20):
        decision, after = policy.decide(Observation(2, 900.0), state, 15 * rng.random())
        assert (decision.changes, after) == (False, state)


def test_who_begins_a_wake_with_several_is_told_how_many() -> None:
    several = dataclasses.replace(SIZING, activation_replicas=5)
    counts = {name: drive(name, [3.0], 0, 20.0, several)[-1].desired for name in ("knative", "hpa")}
    assert counts == {"knative": 5, "hpa": 1}
