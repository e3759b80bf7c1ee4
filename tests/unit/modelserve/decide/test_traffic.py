"""Arrival rate and service time, estimated."""

import math
from dataclasses import replace

import pytest

from modelserve.decide import demand, observation, state, traffic

PARAMETERS = observation.Parameters(slots=8, cold_start_s=40, service_s=4)


def advance(
    past: traffic.Traffic,
    now_s: float,
    parameters: observation.Parameters = PARAMETERS,
    restored_s: float | None = None,
    **signal: float,
) -> traffic.Traffic:
    gateways = observation.GatewaySignal(**({"live_gateways": 1} | signal))  # type: ignore[arg-type]
    seen = observation.Observation((), gateways, 0)
    measured = demand.measure(seen, parameters, now_s)
    return traffic.advance(past, seen, parameters, measured, now_s, restored_s)


def rate(past: traffic.Traffic, now_s: float) -> float:
    return traffic.arrival_rate_per_s(past, PARAMETERS, now_s)


def test_a_lone_arrival_is_no_rate() -> None:
    past = advance(traffic.Traffic(), 100.0, arrivals=1, held=1)
    assert rate(past, 100.0) == 0


def test_a_steady_stream_is_its_rate() -> None:
    past = traffic.Traffic()
    for second in range(100, 160):
        past = advance(past, float(second), arrivals=2)
    assert rate(past, 159.0) == pytest.approx(1.9)
    assert len(past.slices) <= 45


def test_the_rate_is_gone_one_window_after_the_last_arrival() -> None:
    past = advance(traffic.Traffic(), 100.0, arrivals=50)
    assert rate(past, 105.0) > 4
    assert rate(past, 112.0) == 0


def test_a_count_that_came_late_is_spread_over_the_time_it_may_have_come_in() -> None:
    """At a time scale of 60 a gateway's snapshot a second covers an emulated minute."""
    scaled = replace(PARAMETERS, snapshot_s=60.0)
    past = advance(traffic.Traffic(), 1000.0, scaled, arrivals=1)
    past = advance(past, 1060.0, scaled, arrivals=120)
    assert traffic.arrival_rate_per_s(past, scaled, 1060.0) == pytest.approx(119 / 60)


def test_a_rate_is_measured_over_a_quarter_of_a_cold_start() -> None:
    slow = replace(PARAMETERS, cold_start_s=200.0)
    assert traffic.window_s(traffic.Traffic(), slow) == 50


def test_the_rate_does_not_sag_between_two_snapshots() -> None:
    """At a time scale of 20 nothing new is known for 20 emulated seconds, and nothing has ended."""
    scaled = replace(PARAMETERS, snapshot_s=20.0)
    past = advance(traffic.Traffic(), 1000.0, scaled, arrivals=100)
    past = advance(past, 1020.0, scaled, arrivals=100)
    told = traffic.arrival_rate_per_s(past, scaled, 1020.0)
    assert traffic.arrival_rate_per_s(past, scaled, 1039.0) == told > 4


def test_the_service_time_moves_from_the_first_estimate_to_what_is_measured() -> None:
    past = advance(traffic.Traffic(), 1.0, completions=1, service_sum_s=9.0)
    assert past.service_s == pytest.approx(5.0)
    past = advance(past, 2.0, completions=200, service_sum_s=1800.0)
    assert past.service_s == pytest.approx(9.0, abs=0.01)


@pytest.mark.parametrize("value", [math.nan, math.inf, -5.0])
def test_an_odd_service_time_changes_nothing(value: float) -> None:
    past = traffic.Traffic(service_s=3.0, service_samples=9)
    assert advance(past, 1.0, completions=3, service_sum_s=value).service_s == 3.0


def test_the_last_request_ends_when_nothing_is_open_any_more() -> None:
    past = advance(traffic.Traffic(), 10.0, held=1)
    past = advance(past, 50.0, completions=1, service_sum_s=1.0)
    assert advance(past, 90.0).last_active_s == 50.0


def test_the_state_survives_a_restart_as_ages_on_another_clock() -> None:
    past = advance(traffic.Traffic(), 50.0, completions=1, service_sum_s=9.0)
    memory = state.ScalerState(known=past)
    saved = state.to_status(memory, 90.0, arrival_rate_per_s=1.5, cold_start_s=60)
    restored = state.from_status(saved, 5.0)
    assert restored.known.last_active_s == 5.0 - 40.0
    assert restored.known.service_s == past.service_s
    assert restored.restored_at_s == 5.0


def test_a_gap_is_counted_when_an_arrival_ends_it() -> None:
    past = advance(traffic.Traffic(), 100.0, arrivals=1, held=1)
    past = advance(past, 400.0)
    assert sum(past.idle.counts) == 0
    past = advance(past, 500.0, arrivals=1, held=1)
    assert sum(past.idle.counts) == 1


def test_a_gap_with_an_operator_restart_in_it_is_not_counted() -> None:
    past = traffic.Traffic(last_active_s=290.0)
    assert advance(past, 500.0, restored_s=300.0, arrivals=1, held=1).idle == past.idle


def working(
    past: traffic.Traffic, now_s: float, waiting: int = 0, **signal: float
) -> traffic.Traffic:
    """Eight requests run on one replica."""
    engine = {"in_flight": 8 + waiting, "waiting": float(waiting), "running": 8.0}
    pod = observation.Replica("a", "a", observation.ReplicaState.READY, 0.0, **engine)  # type: ignore[arg-type]
    gateways = observation.GatewaySignal(**({"live_gateways": 1} | signal))  # type: ignore[arg-type]
    seen = observation.Observation((pod,), gateways, 1)
    measured = demand.measure(seen, PARAMETERS, now_s)
    return traffic.advance(past, seen, PARAMETERS, measured, now_s)


def test_a_first_guess_too_short_shows_before_the_first_request_ends() -> None:
    past = advance(traffic.Traffic(), 100.0, arrivals=8, held=8)
    for second in range(101, 121):
        past = working(past, float(second))
    assert past.service_s == pytest.approx(19.0, abs=1.0)


def test_a_request_after_a_long_silence_is_not_taken_for_an_old_one() -> None:
    past = advance(traffic.Traffic(), 100.0)
    past = working(past, 400.0, arrivals=8)
    assert past.service_s is None


def test_once_enough_have_ended_their_times_alone_count() -> None:
    past = traffic.Traffic(service_s=3.0, service_samples=8)
    for second in range(101, 141):
        past = working(past, float(second))
    assert past.service_s == 3.0


def test_what_requests_wait_in_the_engine_is_no_service_time() -> None:
    """Ten at a time are sent to eight slots, and each takes 8 s in one."""
    past = working(traffic.Traffic(service_s=8.0, service_samples=100), 100.0, waiting=2)
    for second in range(101, 400):
        batch, due = divmod(second - 100, 8)
        ended = {} if due else {"completions": 8, "service_sum_s": 64.0 if batch == 1 else 80.0}
        past = working(past, float(second), waiting=2, **ended)
        assert past.service_s == pytest.approx(8.0, rel=0.01)
