"""The progress guard: a backlog above its forecast makes the count grow."""

from dataclasses import replace

from modelserve.api import spec as api
from modelserve.decide import observation, progress, record, scaling, state, traffic, windows

Reason = record.Reason
READY = observation.ReplicaState.READY
PARAMETERS = observation.Parameters(
    slots=8, cold_start_s=30, service_s=1, max_replicas=32, cooldown_s=300
)


def hung(held: int, arrivals: int = 0) -> observation.Observation:
    """One ready replica that is full and never finishes anything."""
    pod = observation.Replica("a", "a", READY, 0.0, in_flight=10, waiting=2.0, running=8.0)
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


def judged(held: int, *, began: float = 200, rate_per_s: float = 1.0) -> record.Reason:
    """What is said a minute after there were ``began``, when three replicas did 1/s each."""
    pods = [observation.Replica(name, name, READY, 0.0, in_flight=8) for name in "abc"]
    seen = observation.Observation(tuple(pods), observation.GatewaySignal(1, held=held), 3)
    known = traffic.Traffic(8 / rate_per_s, 100)
    watch = progress.Watch(0.0, 3, began, 0, 1.0)
    past = state.ScalerState(known=known, watch=watch)
    return scaling.decide(seen, PARAMETERS, past, 61.0)[0].reason


def test_a_batch_of_each_replica_may_be_due_any_moment() -> None:
    assert judged(200 - 180 + 24) is not Reason.PROGRESS_GUARD
    assert judged(200 - 180 + 25) is Reason.PROGRESS_GUARD


def test_a_rate_that_is_known_to_be_less_by_now_is_no_surprise() -> None:
    assert judged(60, began=130, rate_per_s=0.5) is Reason.BACKLOG_WITHIN_COLD_START


def test_a_small_backlog_that_stays_is_not_left_for_ever() -> None:
    assert judged(6, began=6) is Reason.PROGRESS_GUARD


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
