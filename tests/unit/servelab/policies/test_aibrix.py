"""AIBrix with figures of its own tests, and the ways that public reports tell of."""

import dataclasses

import pytest

from modelserve.decide import windows
from servelab.policies import aibrix
from servelab.policies.aibrix import AiBrix, Strategy
from servelab.policies.decision import Reason
from servelab.policies.observation import Observation, Pod


# algorithm/apa_test.go
@pytest.mark.parametrize(
    ("current", "load", "rates", "count"),
    [
        pytest.param(2, 45, (2, 2), 3, id="basic_scale_up"),
        pytest.param(2, 35, (2, 2), 3, id="scale_up_upto_ceiling"),
        pytest.param(2, 90, (2, 2), 4, id="scale_up_upto_max_scale_up"),
        pytest.param(2, 90, (2.5, 2), 5, id="scale_up_upto_max_scale_up_ceiling"),
        pytest.param(6, 20, (2, 2), 4, id="basic_scale_down"),
        pytest.param(6, 18, (2, 2), 4, id="scale_down_upto_ceiling"),
        pytest.param(6, 10, (2, 2), 3, id="scale_down_upto_max_scale_down"),
        pytest.param(6, 5, (2, 2.5), 2, id="scale_down_upto_max_scale_down_floor"),
        pytest.param(2, 33, (2, 2), 2, id="no_scaling_as_within_up_tolerance"),
        pytest.param(2, 27, (2, 2), 2, id="no_scaling_as_within_down_tolerance"),
    ],
)
def test_apa_is_that_of_its_own_tests(
    current: int, load: float, rates: tuple[float, float], count: int
) -> None:
    rules = AiBrix(30, 100, up_rate=rates[0], down_rate=rates[1])
    assert aibrix.apa(rules, current, load) == count


def test_a_target_of_zero_changes_nothing() -> None:
    assert aibrix.apa(AiBrix(0, 100), 1, 10) == 1


# algorithm/kpa_test.go, tolerances 0 there
@pytest.mark.parametrize(
    ("current", "stable", "panic", "changes", "panicking", "count"),
    [
        pytest.param(2, 20, 20, {}, False, 2, id="stable_mode_basic_scaling"),
        pytest.param(2, 30, 40, {}, True, 4, id="panic_mode_scaling_up"),
        pytest.param(1, 0, 0, {}, False, 0, id="scale_to_zero"),
        pytest.param(0, 15, 15, {"activation_scale": 3}, False, 3, id="activation_scale"),
        pytest.param(2, 100, 100, {"up_rate": 1.5}, False, 3, id="max_scale_up_rate_limit"),
        pytest.param(4, 5, 5, {}, False, 2, id="max_scale_down_rate_limit"),
    ],
)
def test_kpa_is_that_of_its_own_tests(
    current: int,
    stable: float,
    panic: float,
    changes: dict[str, float],
    panicking: bool,
    count: int,
) -> None:
    rules = AiBrix(10, 20, Strategy.KPA, up_tolerance=0, down_tolerance=0)
    rules = dataclasses.replace(rules, **changes)  # type: ignore[arg-type]
    assert aibrix.kpa(rules, current, stable, panic, panicking) == count


def test_the_short_window_leads_when_it_is_twice_the_long_one_or_that_is_zero() -> None:
    rules = AiBrix(10, 20, Strategy.KPA)
    pairs = ((10.0, 20.0), (10.0, 20.1), (0.0, 0.0))
    assert [aibrix.panics(rules, *pair) for pair in pairs] == [False, True, True]


def run(
    rules: AiBrix, total: float, syncs: int, count: int, *, ready: int | None = None
) -> list[int]:
    """The count after each sync; ``total`` requests spread over the pods that are ready."""
    state, counts = rules.start(count, 0.0), []
    for number in range(syncs):
        pods = count if ready is None else ready
        seen = tuple(Pod(f"p{n}", True, total / pods) for n in range(pods))
        seen += tuple(Pod(f"s{n}", False) for n in range(count - pods))
        decision, state = rules.decide(Observation(count, total, seen), state, 10.0 * number)
        count = decision.desired
        counts.append(count)
    return counts


def test_apa_doubles_at_every_sync_while_pods_load() -> None:
    # vllm-project/aibrix#2670
    assert run(AiBrix(10, 32), 400, 5, 2, ready=2) == [4, 8, 16, 32, 32]


def test_kpa_takes_the_mean_of_a_pod_for_the_total() -> None:
    # 64 requests at 10 a pod need 7 pods; the mean over 8 pods is 8.
    rules = AiBrix(10, 32, Strategy.KPA, stable_window_s=1, panic_window_s=1)
    assert run(rules, 64, 5, 8) == [4, 2, 4, 2, 4]


def test_the_cooldown_lets_the_least_of_its_window_through() -> None:
    rules = AiBrix(10, 32)
    past = tuple(windows.Recommended(at, n) for at, n in ((0.0, 1), (100.0, 2), (350.0, 5)))
    assert aibrix.cooled(rules, past, 6, 5, 350.0) == 2
    assert aibrix.cooled(rules, past, 3, 5, 350.0) == 5
    assert aibrix.cooled(rules, past, 5, 5, 350.0) == 5


def test_at_zero_it_stays_there() -> None:
    decision, _ = AiBrix(10, 8).decide(Observation(0, 90), AiBrix(10, 8).start(0, 0.0), 0.0)
    assert (decision.desired, decision.reason) == (0, Reason.DISABLED)
    rules = AiBrix(10, 8, min_replicas=0)
    assert rules.decide(Observation(0, 90), rules.start(0, 0.0), 0.0)[0].desired == 0


def test_bounds_pass_before_any_metric() -> None:
    rules = AiBrix(10, 8, min_replicas=2)
    counts = [rules.decide(Observation(n, 0), rules.start(n, 0.0), 0.0)[0].desired for n in (1, 9)]
    assert counts == [2, 8]


def test_when_no_pod_answers_the_count_is_held() -> None:
    seen = Observation(3, 90, tuple(Pod(f"p{n}", True) for n in range(3)))
    decision, _ = AiBrix(10, 8).decide(seen, AiBrix(10, 8).start(3, 0.0), 0.0)
    assert (decision.desired, decision.reason) == (3, Reason.NO_SIGNAL)


def test_a_window_holds_one_mean_a_second_both_ends_included() -> None:
    rules = AiBrix(10, 8, stable_window_s=20)
    means: tuple[tuple[int, float], ...] = ()
    for now_s, load in ((0.0, 9.0), (5.0, 1.0), (5.9, 2.0), (20.0, 4.0), (21.0, 5.0)):
        means = rules._recorded(means, [load], now_s)
    assert means == ((5, 2.0), (20, 4.0), (21, 5.0))
