"""One decision at a time: waking, no figures, modes, when to look again, any odd figures."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelserve.api import spec as api
from modelserve.decide import observation, record, scaling, windows
from modelserve.testing import looks

Reason = record.Reason
State = observation.ReplicaState


def test_the_first_held_request_wakes_the_model() -> None:
    decision = looks.decide(looks.seen(held=1, arrivals=1))
    assert (decision.desired, decision.reason) == (1, Reason.ACTIVATION)
    assert decision.next_ready_at_s == looks.NOW_S + 90
    assert decision.wait_s == 90


def test_activation_replicas_pass_by_windows_and_rates() -> None:
    slow = windows.Direction(600.0, (windows.Rate(windows.Unit.PODS, 1, 600),))
    assert looks.decide(looks.seen(held=1), up=slow, activation_replicas=3).desired == 3


def test_a_refused_request_wakes_and_keeps_awake() -> None:
    assert looks.decide(looks.seen(refused_recently=1)).desired == 1
    assert (
        looks.decide(
            looks.seen(looks.pod("a"), refused_recently=1), looks.busy(quiet_s=900)
        ).desired
        == 1
    )


def test_no_signal_holds_the_count_and_says_so() -> None:
    decision = looks.decide(looks.seen(looks.pod("a", running=None, waiting=None), live_gateways=0))
    assert (decision.desired, decision.reason) == (1, Reason.NO_SIGNAL)
    assert not decision.signal_ok


def test_fallback_replicas_act_once_nothing_was_known_for_a_while() -> None:
    parameters, past = replace(looks.PARAMETERS, fallback_replicas=4), looks.busy()
    first, past = scaling.decide(looks.blind(1), parameters, past, looks.NOW_S)
    assert (first.desired, first.revisit_at_s) == (1, looks.NOW_S + 10)
    later, past = scaling.decide(looks.blind(1), parameters, past, looks.NOW_S + 10)
    assert (later.desired, later.reason) == (4, Reason.FALLBACK)
    assert "fallbackReplicas is 4" in later.message
    known, past = scaling.decide(
        looks.seen(looks.pod("a", load=4)), parameters, past, looks.NOW_S + 11
    )
    assert (known.desired, past.silent_since_s) == (1, None)


def test_fallback_replicas_never_shrink_nor_pass_the_bounds() -> None:
    past = looks.busy()._replace(silent_since_s=looks.NOW_S - 60)
    assert looks.decide(looks.blind(6), past, fallback_replicas=4).desired == 6
    assert looks.decide(looks.blind(1), past, fallback_replicas=40, max_replicas=8).desired == 8
    assert looks.decide(looks.blind(1), past, fallback_replicas=0).desired == 1


@pytest.mark.parametrize("replicas", [0, 1, 40])
def test_manual_is_spec_replicas_whatever_the_demand(replicas: int) -> None:
    decision = looks.decide(
        looks.seen(looks.pod("a"), held=9),
        mode=api.Mode.MANUAL,
        manual_replicas=replicas,
        max_replicas=8,
    )
    assert (decision.desired, decision.reason) == (replicas, Reason.MANUAL)
    assert not decision.wants_zero


def test_dry_run_freezes_the_count_and_says_what_it_would_do() -> None:
    decision = looks.decide(looks.seen(held=5), mode=api.Mode.DRY_RUN)
    assert (decision.desired, decision.reason) == (0, Reason.DRY_RUN)
    assert "it would be 1" in decision.message


def test_scale_up_only_never_shrinks() -> None:
    assert (
        looks.decide(
            looks.seen(looks.pod("a")), looks.busy(quiet_s=900), mode=api.Mode.SCALE_UP_ONLY
        ).desired
        == 1
    )
    assert looks.decide(looks.seen(held=5), mode=api.Mode.SCALE_UP_ONLY).desired == 1


def test_a_wake_by_hand_starts_the_model_and_keeps_it_awake() -> None:
    assert looks.decide(replace(looks.seen(), wake=True)).desired == 1
    awake = replace(looks.seen(looks.pod("a")), awake_until_s=looks.NOW_S + 50)
    assert looks.decide(awake, looks.busy(quiet_s=900)).desired == 1


def test_a_model_at_rest_asks_not_to_be_looked_at_again() -> None:
    decision = looks.decide(looks.seen(), looks.busy(quiet_s=900))
    assert decision.revisit_at_s is None
    assert not decision.changes


def test_a_quiet_model_is_looked_at_a_few_times_and_then_never_again() -> None:
    parameters = replace(looks.PARAMETERS, down=observation.DEFAULT_DOWN)
    there, past, now_s, looked = [looks.pod("a"), looks.pod("b")], looks.busy(1.0), looks.NOW_S, 0
    while True:
        decision, past = scaling.decide(looks.seen(*there), parameters, past, now_s)
        looked, there = looked + 1, there[: decision.desired]
        if decision.changes:
            continue  # what was written is seen at once
        if decision.revisit_at_s is None:
            break
        now_s = decision.revisit_at_s
    assert (there, looked < 20) == ([], True)
    assert now_s == looks.NOW_S + parameters.cooldown_s


def test_a_replica_too_young_for_figures_is_looked_at_again_once_it_is_not() -> None:
    young = looks.pod("a", running=None, waiting=None, ready_since_s=looks.NOW_S - 1)
    floor: dict[str, Any] = {"min_replicas": 1, "max_replicas": 1}
    first = looks.decide(looks.seen(young), **floor)
    assert (first.signal_ok, first.revisit_at_s) == (True, looks.NOW_S + 2)
    then = looks.decide(looks.seen(young), now_s=looks.NOW_S + 2, **floor)
    assert (then.signal_ok, then.signal_missing) == (False, ("a",))


def test_a_decision_that_asks_to_be_revisited_names_a_later_instant() -> None:
    decision = looks.decide(looks.seen(looks.pod("a", load=3), held=2), looks.busy(1.0))
    assert decision.revisit_at_s is not None
    assert decision.revisit_at_s > looks.NOW_S


def test_the_inputs_are_the_numbers_used() -> None:
    decision = looks.decide(looks.seen(looks.pod("a", load=8), held=4), looks.busy(1.0))
    assert decision.inputs["demand"] == 12
    assert decision.inputs["backlog"] == 4
    assert decision.inputs["arrival_rate_per_s"] == pytest.approx(1.0, abs=0.03)


ODD = st.one_of(st.none(), st.floats(), st.sampled_from([-1.0, 1e300]))


PODS = st.lists(
    st.builds(
        observation.Replica,
        uid=st.uuids().map(str),
        name=st.just("p"),
        state=st.sampled_from(State),
        created_s=st.floats(0, 1000),
        started_s=st.none() | st.floats(0, 1000),
        ready_since_s=st.none() | st.floats(0, 1000),
        expected_ready_s=st.none() | st.floats(0, 2000),
        in_flight=st.integers(-5, 2_000_000),
        waiting=ODD,
        running=ODD,
        deletion_cost=st.none() | st.integers(-3, 3),
    ),
    max_size=6,
)


SIGNALS = st.builds(
    observation.GatewaySignal,
    live_gateways=st.integers(0, 2),
    held=st.integers(-1, 2_000_000),
    refused_recently=st.integers(0, 1000),
    arrivals=st.integers(0, 10_000),
    completions=st.integers(0, 10_000),
    service_sum_s=st.floats(),
)


@given(
    pods=PODS,
    signal=SIGNALS,
    count=st.integers(0, 10),
    mode=st.sampled_from([api.Mode.AUTO, api.Mode.SCALE_UP_ONLY]),
    policy=st.sampled_from(api.Policy),
    quiet_s=st.floats(0, 2000),
)
@settings(deadline=None)
def test_no_figures_raise_and_unknown_ones_never_shrink(
    pods: list[observation.Replica],
    signal: observation.GatewaySignal,
    count: int,
    mode: api.Mode,
    policy: api.Policy,
    quiet_s: float,
) -> None:
    what = observation.Observation(tuple(pods), signal, count)
    decision = looks.decide(what, looks.busy(1.0, quiet_s), mode=mode, policy=policy)
    assert 0 <= decision.desired <= 32
    unplaced = sum(p.state is State.UNSCHEDULABLE for p in pods)
    unknown = any(p.serves and (p.waiting is None or p.running is None) for p in pods)
    if unknown or not signal.live_gateways:
        assert decision.desired >= count - unplaced
    if signal.live_gateways and 0 < signal.held < 1e6:
        assert decision.desired >= 1
