"""Demand: counted once, from whatever source is known, and never taken for zero."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelserve.decide import demand, observation

State = observation.ReplicaState
PARAMETERS = observation.Parameters(slots=8, cold_start_s=90, service_s=10)


def replica(uid: str = "a", **fields: object) -> observation.Replica:
    base = observation.Replica(uid, uid, State.READY, 0.0, ready_since_s=0.0)
    return replace(base, **fields)  # type: ignore[arg-type]


def seen(*replicas: observation.Replica, **signal: int) -> observation.Observation:
    gateways = observation.GatewaySignal(**({"live_gateways": 1} | signal))
    return observation.Observation(replicas, gateways, len(replicas))


def measure(what: observation.Observation, now_s: float = 100.0) -> demand.Demand:
    return demand.measure(what, PARAMETERS, now_s)


@pytest.mark.parametrize(
    ("in_flight", "waiting", "running", "expected"),
    [
        pytest.param(5, 2.0, 3.0, 5, id="both see the same"),
        pytest.param(5, 0.0, 3.0, 5, id="two are on their way to the engine"),
        pytest.param(2, 4.0, 3.0, 7, id="the engine sees traffic past the gateway"),
        pytest.param(5, None, None, 5, id="no sample"),
        pytest.param(5, math.nan, 3.0, 5, id="half a sample"),
    ],
)
def test_a_request_on_a_replica_counts_once(
    in_flight: int, waiting: float | None, running: float | None, expected: int
) -> None:
    now = measure(seen(replica(in_flight=in_flight, waiting=waiting, running=running)))
    assert now.total == expected


def test_held_and_recently_refused_requests_are_demand() -> None:
    now = measure(seen(held=12, refused_recently=3))
    assert (now.total, now.held, now.refused) == (15, 12, 3)


def test_the_parts_add_up_to_the_total() -> None:
    now = measure(seen(replica(in_flight=11, waiting=3.0, running=7.0), held=12))
    assert (now.held, now.waiting, now.running, now.total) == (12, 3, 8, 23)


def test_terminating_replicas_count_for_nothing() -> None:
    leaving = replica(state=State.TERMINATING, in_flight=9, waiting=4.0, running=5.0)
    now = measure(seen(leaving))
    assert now.total == 0
    assert now.complete


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0, 1e300, 1e7])
def test_an_odd_sample_is_no_signal_and_not_zero(value: float) -> None:
    now = measure(seen(replica(in_flight=4, waiting=value, running=1.0)))
    assert now.total == 4
    assert not now.complete
    assert now.failing == ("a",)


def test_no_live_gateway_is_no_signal() -> None:
    now = measure(seen(live_gateways=0, held=7))
    assert not now.signal
    assert not now.complete
    assert now.total == 0


def test_engines_alone_are_a_signal_to_grow_by() -> None:
    now = measure(seen(replica(waiting=30.0, running=8.0), live_gateways=0))
    assert now.signal
    assert now.total == 38
    assert now.failing == ("the gateways",)


def test_a_replica_ready_this_instant_is_not_missed_yet() -> None:
    now = measure(seen(replica(ready_since_s=99.0)))
    assert not now.complete
    assert now.failing == ()


@given(
    gateways=st.lists(st.lists(st.integers(0, 20), min_size=3, max_size=3), min_size=1, max_size=3),
    beside=st.lists(st.integers(0, 5), min_size=3, max_size=3),
    held=st.integers(0, 50),
    refused=st.integers(0, 50),
)
def test_demand_equals_the_open_client_requests(
    gateways: list[list[int]], beside: list[int], held: int, refused: int
) -> None:
    """Invariant 9: several gateways, a surge pod and a terminating one, engines sampled or not."""
    through = [sum(column) for column in zip(*gateways, strict=True)]
    replicas = [
        replica("old", in_flight=through[0], waiting=float(beside[0]), running=float(through[0])),
        replica("surge", in_flight=through[1], waiting=0.0, running=float(through[1] + beside[1])),
        replica(
            "leaving", state=State.TERMINATING, in_flight=through[2], running=float(through[2])
        ),
    ]
    now = measure(seen(*replicas, held=held, refused_recently=refused))
    assert now.total == through[0] + through[1] + beside[0] + beside[1] + held + refused
