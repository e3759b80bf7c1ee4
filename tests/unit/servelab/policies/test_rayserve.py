"""Ray Serve with figures of its own documentation and tests."""

import dataclasses

import pytest

from servelab.policies import rayserve
from servelab.policies.decision import Reason
from servelab.policies.observation import Observation, Pod
from servelab.policies.rayserve import RayServe

QUICK = RayServe(1.0, 0, 100, 0.0, 0.0)


def seen(count: int, demand: float | None, ready: int | None = None) -> Observation:
    pods = count if ready is None else ready
    held = demand or 0.0 if pods == 0 else 0.0
    return Observation(count, demand, tuple(Pod(f"p{n}", True) for n in range(pods)), held=held)


def told(policy: RayServe, demand: float, count: int, ready: int | None = None) -> int:
    """The count when the controller has just been told of this many requests."""
    state = dataclasses.replace(policy.start(count, 0.0), reported=(0.0, demand))
    return policy.decide(seen(count, demand, ready), state, 0.1)[0].desired


# python/ray/serve/tests/unit/test_autoscaling_policy.py, delays 0
@pytest.mark.parametrize(
    ("changes", "demand", "count", "after"),
    [
        pytest.param({"target": 5.0}, 20, 4, 4, id="one replica gets all: 20"),
        pytest.param({"target": 5.0}, 100, 4, 20, id="one replica gets all: 100"),
        pytest.param({"target": 5.0}, 10, 4, 2, id="one replica gets all: 10"),
        pytest.param({"target": 50.0}, 100, 1, 2, id="fluctuating: up"),
        pytest.param({"target": 50.0}, 40, 2, 1, id="fluctuating: down"),
        pytest.param({"downscaling_factor": 10.0}, 0, 5, 1, id="not past one at first"),
        pytest.param({"downscaling_factor": 10.0}, 0, 1, 0, id="then to zero"),
        pytest.param({"upscaling_factor": 0.5}, 40, 20, 30, id="half the step up"),
        pytest.param({"downscaling_factor": 0.5}, 20, 40, 30, id="half the step down"),
        pytest.param({"max_replicas": 10}, 40, 5, 10, id="maximum"),
        pytest.param({"min_replicas": 3}, 0, 5, 3, id="minimum"),
    ],
)
def test_the_count_moves_with_the_load_and_the_factors(
    changes: dict[str, float], demand: float, count: int, after: int
) -> None:
    policy = dataclasses.replace(QUICK, **changes)  # type: ignore[arg-type]
    assert told(policy, demand, count) == after


def test_a_small_factor_does_not_get_stuck_above_zero() -> None:
    policy, count = dataclasses.replace(QUICK, downscaling_factor=0.2), 5
    for _ in range(5):
        count = told(policy, 0, count)
    assert count == 0


def test_replicas_that_still_start_are_not_ordered_again() -> None:
    # test_replicas_delayed_startup: upscale_delay_s 0, downscale_delay_s 100000
    policy = RayServe(1.0, 1, 200, 0.0, 100_000.0)
    assert told(policy, 100, 1) == 100
    assert told(policy, 100, 100, ready=1) == 100
    assert told(policy, 123, 100, ready=3) == 123
    assert told(policy, 10, 123, ready=4) == 123


def test_from_zero_the_factor_decides_and_no_delay() -> None:
    slow = RayServe(min_replicas=0, upscaling_factor=10)
    assert told(slow, 1, 0) == 10
    assert told(dataclasses.replace(slow, upscaling_factor=0.5), 1, 0) == 1
    assert told(slow, 0, 0) == 0
    assert told(RayServe(), 500, 3, ready=0) == 3  # nothing runs yet: what is asked for stays


def run(policy: RayServe, loads: list[tuple[float, float]], count: int) -> list[tuple[float, int]]:
    """The changes of the count; each load lasts its seconds. Replicas are ready at once."""
    now_s = end_s = 0.0
    state, changes = policy.start(count, now_s), []
    for length_s, load in loads:
        end_s += length_s
        while now_s < end_s:
            decision, state = policy.decide(seen(count, load), state, now_s)
            if decision.changes:
                count = decision.desired
                changes.append((now_s, count))
            assert decision.revisit_at_s is not None
            assert decision.revisit_at_s > now_s
            now_s = decision.revisit_at_s
    return changes


def test_the_default_delays_are_half_a_minute_up_and_ten_minutes_down() -> None:
    changes = run(RayServe(), [(300.0, 20.0), (1200.0, 4.0)], 1)
    ups = [change for change in changes if change[0] < 300]
    (down_s, after), *_ = [change for change in changes if change[0] >= 900]
    assert ups == [(40, 10)]  # first report at 10 s, then 30 s
    assert 900 <= down_s < 950
    assert after == 2


def test_a_delay_starts_anew_when_the_direction_changes() -> None:
    policy = RayServe(1.0, 1, 10, 30.0, 30.0, look_back_s=1.0, metrics_interval_s=1.0)
    loads = [(20.0, 5.0), (2.0, 3.0)] * 20
    assert run(policy, loads, 3) == []


def test_the_last_replica_has_a_delay_of_its_own() -> None:
    policy = RayServe(1.0, 0, 10, downscale_delay_s=10.0, downscale_to_zero_delay_s=100.0)
    (first_s, one), (last_s, zero) = run(policy, [(30.0, 4.0), (400.0, 0.0)], 4)
    assert (one, zero) == (1, 0)
    assert last_s - first_s >= 100


def test_what_is_reported_is_the_mean_of_the_look_back_period() -> None:
    policy = RayServe()
    state = policy.start(5, 0.0)
    for now_s, load in ((6.0, 10.0), (10.0, 99.0), (12.0, 20.0), (18.0, 60.0), (20.0, 99.0)):
        _, state = policy.decide(seen(5, load), state, now_s)
    assert state.reported == (20.0, 30.0)


def test_a_handle_without_replicas_reports_at_once_what_it_has_seen() -> None:
    policy = RayServe(min_replicas=0)
    decision, state = policy.decide(seen(0, 7), policy.start(0, 0.0), 1.0)
    assert (decision.desired, decision.reason) == (1, Reason.ACTIVATION)
    assert state.reported == (1.0, 7.0)


def test_after_a_quiet_time_the_mean_still_holds_zeros() -> None:
    # Its samples are taken each 6 s: until the next one a first request is not in the mean.
    policy = RayServe(min_replicas=0)
    _, state = policy.decide(seen(0, 0), policy.start(0, 0.0), 6.0)
    decision, state = policy.decide(seen(0, 7), state, 7.0)
    assert decision.desired == 0
    assert policy.decide(seen(0, 7), state, 12.0)[0].desired == 1


def test_a_handle_that_is_not_heard_of_has_no_requests() -> None:
    policy = RayServe(1.0, 1, 10, 0.0, 0.0)
    state = dataclasses.replace(policy.start(5, 0.0), reported=(0.0, 5.0))
    kept, state = policy.decide(seen(5, None), state, 19.9)
    lost, _ = policy.decide(seen(5, None), state, 20.0)
    assert (kept.desired, lost.desired) == (5, 1)


def test_the_constants_are_those_of_its_configuration() -> None:
    plain = RayServe()
    assert (plain.target, plain.look_back_s, plain.record_s) == (2.0, 30.0, 6.0)
    assert (plain.upscale_delay_s, plain.downscale_delay_s) == (30.0, 600.0)
    assert rayserve.LOOP_S == 0.1
