"""The progress guard: a backlog above its forecast makes the count grow."""

from dataclasses import replace

from modelserve.api import spec as api
from modelserve.decide import observation, record, scaling, state, traffic, windows

Reason = record.Reason
PARAMETERS = observation.Parameters(
    slots=8, cold_start_s=30, service_s=1, max_replicas=32, cooldown_s=300
)


def hung(held: int, arrivals: int = 0) -> observation.Observation:
    """One ready replica that is full and never finishes anything."""
    ready = observation.ReplicaState.READY
    pod = observation.Replica("a", "a", ready, 0.0, in_flight=10, waiting=2.0, running=8.0)
    signal = observation.GatewaySignal(1, held=held, arrivals=arrivals)
    return observation.Observation((pod,), signal, 1)


def watched(parameters: observation.Parameters, seconds: int) -> list[record.Decision]:
    past, decisions = state.ScalerState(known=traffic.Traffic(1.0, 100)), []
    for second in range(seconds):
        decision, past = scaling.decide(hung(40), parameters, past, float(second))
        decisions.append(decision)
    return decisions


def test_a_backlog_that_does_not_fall_is_given_one_rate_step() -> None:
    decisions = watched(PARAMETERS, 30)
    assert decisions[5].desired == 1
    last = decisions[-1]
    assert (last.desired, last.reason) == (5, Reason.PROGRESS_GUARD)
    assert "still wait where 0 should" in last.message


def test_it_never_asks_for_more_than_queue_depth_would() -> None:
    free = replace(PARAMETERS, up=windows.Direction())
    by_depth = watched(replace(free, policy=api.Policy.QUEUE_DEPTH), 2)[-1].desired
    assert watched(free, 60)[-1].desired == by_depth == 8


def test_it_asks_to_be_looked_at_when_it_judges() -> None:
    decision = watched(replace(PARAMETERS, snapshot_s=50.0), 2)[-1]
    assert decision.revisit_at_s is not None
    assert decision.revisit_at_s <= 200


def test_figures_that_are_old_are_given_their_time() -> None:
    """At a time scale of 60 a report is a minute old, and a minute's work is not in it."""
    scaled = replace(PARAMETERS, snapshot_s=60.0)
    assert watched(scaled, 230)[-1].desired == 1


def test_a_backlog_that_falls_as_expected_is_let_be() -> None:
    past = state.ScalerState(known=traffic.Traffic(1.0, 100))
    for second in range(40):
        seen = hung(max(0, 300 - 8 * second))
        decision, past = scaling.decide(seen, PARAMETERS, past, float(second))
        assert decision.reason is not Reason.PROGRESS_GUARD
