"""KEDA with figures of its own tests, and the time from the last request to zero."""

import dataclasses

import pytest

from modelserve.api import spec as api
from servelab.policies import keda
from servelab.policies.decision import Reason
from servelab.policies.observation import Observation

PLAIN = keda.Keda(5.0)
FALLBACK = keda.Fallback(3, 10)


def polled(policy: keda.Keda, count: int, demand: float | None, **state: float) -> int:
    """The count after one poll at 1000 s, the autoscaler not due."""
    past = policy.start(count, 0.0)
    past = dataclasses.replace(past, hpa=dataclasses.replace(past.hpa, due_at_s=2000.0))
    past = dataclasses.replace(past, **state)  # type: ignore[arg-type]
    return policy.decide(Observation(count, demand), past, 1000.0)[0].desired


# pkg/scaling/executor/scale_scaledobjects_test.go
@pytest.mark.parametrize(
    ("settings", "count", "demand", "after"),
    [
        pytest.param({"min_replicas": 0}, 10, 0, 0, id="to minReplicas when not active"),
        pytest.param({"min_replicas": 5}, 1, 0, 5, id="up to minReplicas when not active"),
        pytest.param({"min_replicas": 0}, 0, 1, 1, id="from zero when active"),
        pytest.param({"min_replicas": 5, "idle_replicas": 0}, 10, 0, 0, id="to idle"),
        pytest.param({"min_replicas": 5, "idle_replicas": 0}, 0, 1, 5, id="from idle to min"),
        pytest.param({"min_replicas": 5, "idle_replicas": 3}, 3, 1, 5, id="from three idle ones"),
        pytest.param({"activation": 10}, 0, 10, 0, id="at the activation threshold"),
        pytest.param({"activation": 10}, 0, 10.5, 1, id="above the activation threshold"),
        pytest.param({"min_replicas": 2}, 7, 0, 7, id="above min: left to the autoscaler"),
    ],
)
def test_the_executor_does_what_its_own_tests_expect(
    settings: dict[str, int], count: int, demand: float, after: int
) -> None:
    policy = dataclasses.replace(PLAIN, **settings)  # type: ignore[arg-type]
    assert polled(policy, count, demand) == after


def test_the_cooldown_counts_from_the_last_active_poll() -> None:
    assert polled(PLAIN, 2, 0, last_active_s=701.0) == 2
    assert polled(PLAIN, 2, 0, last_active_s=700.0) == 0
    assert polled(dataclasses.replace(PLAIN, initial_cooldown_s=1001), 2, 0) == 2


def test_no_figure_is_zero_for_prometheus_and_an_error_for_others() -> None:
    strict = dataclasses.replace(PLAIN, null_is_zero=False)
    assert polled(PLAIN, 4, None) == 0
    assert polled(PLAIN, 4, float("nan")) == 0
    assert polled(strict, 4, None) == 4
    assert polled(dataclasses.replace(strict, fallback=FALLBACK), 4, None) == 4


# pkg/fallback/fallback_test.go: threshold 3, ten replicas, target 10 make a metric of 100.
@pytest.mark.parametrize(
    ("behavior", "current", "after"),
    [
        (keda.Keep.STATIC, 3, 10),
        (keda.Keep.CURRENT, 6, 6),
        (keda.Keep.CURRENT_IF_HIGHER, 5, 10),
        (keda.Keep.CURRENT_IF_HIGHER, 15, 15),
        (keda.Keep.CURRENT_IF_LOWER, 15, 10),
    ],
)
def test_beyond_the_failure_threshold_the_autoscaler_is_given_the_fallback(
    behavior: keda.Keep, current: int, after: int
) -> None:
    fallback = keda.Fallback(3, 10, behavior)
    policy = keda.Keda(10.0, null_is_zero=False, fallback=fallback)
    assert fallback.count(current) == after
    told, state = policy._queried(
        Observation(current, None), dataclasses.replace(policy.start(current, 0.0), failures=3)
    )
    assert (told.demand, state.failures) == (10.0 * after, 4)
    below, _ = policy._queried(Observation(current, None), policy.start(current, 0.0))
    assert below.demand is None


def test_a_fallback_keeps_zero_away() -> None:
    policy = keda.Keda(10.0, null_is_zero=False, fallback=FALLBACK)
    assert polled(policy, 0, None, failures=2) == 0
    assert polled(policy, 0, None, failures=3) == 1


def run(policy: keda.Keda, loads: dict[float, float], end_s: float) -> list[tuple[float, int]]:
    """The changes of the count; a load holds from its time on."""
    now_s, count, load = 0.0, 0, 0.0
    state, changes = policy.start(count, now_s), []
    while now_s <= end_s:
        load = next(v for at_s, v in reversed(loads.items()) if at_s <= now_s)
        decision, state = policy.decide(Observation(count, load), state, now_s)
        assert decision.current == count
        if decision.changes:
            count = decision.desired
            changes.append((now_s, count))
        assert decision.revisit_at_s is not None
        assert decision.revisit_at_s > now_s
        now_s = decision.revisit_at_s
    return changes


def test_zero_to_one_waits_for_a_poll_and_the_rest_for_the_autoscaler() -> None:
    # Polls at 0, 30 …; from zero the autoscaler sleeps, and syncs again at 30.
    assert run(PLAIN, {0: 0, 1: 40}, 100) == [(30, 4), (45, 8)]


def test_n_to_zero_goes_at_once_after_the_cooldown_past_the_autoscalers_window() -> None:
    changes = run(PLAIN, {0: 20, 60: 0}, 600)
    # Last active at 30; the cooldown passes the autoscaler's own window of 300 s.
    assert changes == [(0, 4), (330, 0)]


def test_waiting_requests_alone_can_be_the_metric() -> None:
    policy = dataclasses.replace(PLAIN, counts=api.QueueDepthCounts.WAITING)
    view = Observation(1, 50, waiting=12)
    decision, _ = policy.decide(view, policy.start(1, 0.0), 0.0)
    assert decision.desired == 3


def test_its_autoscaler_keeps_at_least_one() -> None:
    assert PLAIN.scaler.min_replicas == 1
    assert PLAIN.scaler.max_replicas == 100


def test_the_reason_is_the_executors_where_it_acted() -> None:
    decision, _ = PLAIN.decide(Observation(0, 3), PLAIN.start(0, 0.0), 0.0)
    assert (decision.desired, decision.reason) == (1, Reason.ACTIVATION)
