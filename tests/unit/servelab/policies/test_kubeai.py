"""KubeAI with figures of its own tests, and times worked out from its constants."""

import math

import pytest

from servelab.policies import kubeai
from servelab.policies.decision import Reason
from servelab.policies.observation import Observation


# internal/movingaverage/simple_test.go
@pytest.mark.parametrize(
    ("size", "values", "mean"),
    [(3, (1, 2, 3), 2), (3, (3, 2, 1), 2), (3, (3, 2, 1, 1, 1, 1), 1), (2, (2, 3), 2.5)],
)
def test_the_mean_is_over_a_ring_filled_with_zeros(
    size: int, values: tuple[float, ...], mean: float
) -> None:
    samples: tuple[float, ...] = (0.0,) * size
    for number, value in enumerate(values):
        samples = kubeai.sampled(samples, number % size, value)
    assert kubeai.mean(samples) == mean


# internal/config/system_test.go
@pytest.mark.parametrize(
    ("interval_s", "window_s", "delay_s", "ticks", "samples"),
    [(10, 600, 30, 3, 60), (1, 10, 10, 10, 10), (2, 5, 3, 2, 3)],
)
def test_windows_and_delays_are_counted_in_whole_ticks(
    interval_s: float, window_s: float, delay_s: float, ticks: int, samples: int
) -> None:
    policy = kubeai.KubeAi(interval_s=interval_s, window_s=window_s, scale_down_delay_s=delay_s)
    assert (policy.lower_ticks, policy.sample_count) == (ticks, samples)


def run(policy: kubeai.KubeAi, loads: list[float | None], count: int = 0) -> list[int]:
    """The count after each tick, the first one interval after the start."""
    state, counts = policy.start(count, 0.0), []
    for number, load in enumerate(loads, 1):
        now_s = number * policy.interval_s
        decision, state = policy.decide(Observation(count, load), state, now_s)
        count = decision.desired
        counts.append(count)
    return counts


def test_its_own_test_goes_to_six_and_back_to_zero() -> None:
    # test/integration/autoscaling_ha_test.go: 1 + 2 + 3 active at a target of 1, window 1 s.
    policy = kubeai.KubeAi(1, 0, 100, 2, interval_s=0.25, window_s=1)
    assert run(policy, [6] * 4)[-1] == 6
    assert run(policy, [*[6] * 4, *[0] * 30])[-1] == 0


def test_steady_load_takes_minutes_to_be_believed() -> None:
    counts = run(kubeai.KubeAi(), [300.0] * 60)
    assert counts.index(2) + 1 == 21  # at 210 s
    assert counts.index(3) + 1 == 41  # at 410 s
    assert run(kubeai.KubeAi(), [1000.0] * 60).index(10) + 1 == 55  # at 550 s


def test_fewer_are_taken_only_after_three_ticks_in_a_row() -> None:
    policy = kubeai.KubeAi(10, window_s=10)
    assert run(policy, [50, 10, 10, 10, 10, 10]) == [5, 5, 5, 5, 1, 1]
    assert run(policy, [50, 10, 10, 50, 10, 10, 10]) == [5] * 7


def test_a_held_request_gets_one_replica_at_once() -> None:
    policy = kubeai.KubeAi()
    decision, state = policy.decide(Observation(0, 1, held=1), policy.start(0, 0.0), 3.0)
    assert (decision.desired, decision.reason, decision.revisit_at_s) == (1, Reason.ACTIVATION, 10)
    assert state == policy.start(0, 0.0)


def test_a_failed_scrape_skips_the_tick() -> None:
    assert run(kubeai.KubeAi(1, window_s=20), [8, None, 8]) == [4, 4, 8]


def test_bounds_hold() -> None:
    assert run(kubeai.KubeAi(1, 2, 3, window_s=10), [0, 50, 0], count=2) == [2, 3, 3]
    assert kubeai.KubeAi().target == 100
    assert math.isclose(kubeai.KubeAi().interval_s, 10)
