"""What a full replica drains, measured."""

import pytest

from modelserve.decide import demand, drain, observation

PARAMETERS = observation.Parameters(slots=8, cold_start_s=90, service_s=4)
SERVICE_S = 2.0


def advance(
    past: drain.Drain, now_s: float, *loads: int, completions: int = 0, service_s: float = SERVICE_S
) -> drain.Drain:
    ready = observation.ReplicaState.READY
    pods = tuple(
        observation.Replica(str(i), str(i), ready, 0.0, in_flight=load)
        for i, load in enumerate(loads)
    )
    signal = observation.GatewaySignal(1, completions=completions)
    seen = observation.Observation(pods, signal, len(pods))
    now = demand.measure(seen, PARAMETERS, now_s)
    return drain.advance(past, seen, now, PARAMETERS.slots, service_s, now_s)


def test_before_anything_is_measured_it_is_slots_over_service_time() -> None:
    assert drain.Drain().rate_per_s(8, 2.0) == 4.0


def test_full_replicas_are_measured_from_completion_to_completion() -> None:
    past = drain.Drain()
    for second in range(100):
        past = advance(past, float(second), 10, 10, completions=2)
    assert past.rate_per_s(8, SERVICE_S) == pytest.approx(1.0, rel=0.2)


def test_requests_that_end_together_are_no_slow_replica() -> None:
    """Eight end every ten seconds: 0.8 a second, wherever the measuring begins."""
    past = drain.Drain()
    for second in range(95):
        ended = 8 if second % 10 == 9 else 0
        past = advance(past, float(second), 8, completions=ended, service_s=10.0)
    assert past.rate_per_s(8, 10.0) == pytest.approx(0.8)


def test_batches_that_end_out_of_step_are_no_spurts_and_lulls() -> None:
    """Three replicas, each ends eight every nine seconds, one shortly after the other."""
    past, rates = drain.Drain(), []
    for second in range(120):
        ended = 8 if second % 9 in (0, 1, 2) else 0
        past = advance(past, float(second), 8, 8, 8, completions=ended, service_s=9.0)
        rates.append(past.rate_per_s(8, 9.0))
    assert 0.85 * 8 / 9 <= min(rates) <= max(rates) <= 1.15 * 8 / 9


@pytest.mark.parametrize(
    "loads",
    [
        pytest.param((10, 3), id="one has room"),
        pytest.param((), id="none is ready"),
    ],
)
def test_nothing_is_measured_unless_all_are_full(loads: tuple[int, ...]) -> None:
    past = drain.Drain()
    for second in range(100):
        past = advance(past, float(second), *loads, completions=2)
    assert past == drain.Drain()


def test_one_more_replica_begins_the_measurement_anew() -> None:
    past = advance(advance(drain.Drain(), 50.0, 8), 51.0, 8, 8, completions=5)
    assert (past.full_since_s, past.busy_s) == (51.0, 0.0)


def test_looks_too_far_apart_measure_nothing() -> None:
    """Full at both says nothing of the time between: it may have been idle."""
    past = drain.Drain()
    for look in range(20):
        past = advance(past, look * 20.0, 8, completions=3)
    assert past.busy_s == 0
