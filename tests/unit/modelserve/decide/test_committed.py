"""Policy Committed: what is ordered for the load, and what for a backlog."""

from dataclasses import replace

import pytest

from modelserve.api import spec as api
from modelserve.decide import observation, record, scaling, state, windows
from modelserve.testing import looks

Reason = record.Reason
State = observation.ReplicaState


def test_without_a_backlog_the_count_follows_the_arrival_rate() -> None:
    decision = looks.decide(
        looks.seen(looks.pod("a", load=8), looks.pod("b", load=8)), looks.busy(rate_per_s=2.0)
    )
    assert (decision.desired, decision.reason) == (4, Reason.STEADY_LOAD)


def test_a_backlog_that_starting_replicas_work_off_orders_nothing() -> None:
    starting = [
        looks.pod(f"s{i}", State.STARTING, expected_ready_s=looks.NOW_S + 20) for i in range(4)
    ]
    decision = looks.decide(
        looks.seen(looks.pod("a", load=8), *starting, held=30), looks.busy(rate_per_s=1.0)
    )
    assert (decision.desired, decision.reason) == (5, Reason.BACKLOG_WITHIN_COLD_START)


def test_a_backlog_beyond_the_cold_start_orders_more_and_says_why() -> None:
    starting = [
        looks.pod(f"s{i}", State.STARTING, expected_ready_s=looks.NOW_S + 41) for i in range(2)
    ]
    decision = looks.decide(looks.seen(*starting, held=110), looks.busy(rate_per_s=1.9))
    assert (decision.desired, decision.reason) == (6, Reason.BACKLOG_BEYOND_COLD_START)
    assert decision.limits == (Reason.RATE_LIMITED,)
    assert decision.message == (
        "110 requests in demand (110 held, 0 waiting, 0 running), 1.9/s arriving, 10 s each: "
        "2 replicas are starting and will be there in 41 s; in 90 s, when one ordered now could "
        "help, 204 are left, and 12.6/s are needed; the rate policies allow 6 now, so 2 → 6"
    )


def test_a_backlog_that_takes_little_more_than_there_is_is_left_alone_and_says_so() -> None:
    pods = [looks.pod("a", load=8), looks.pod("b", load=8)]
    tolerant = {"tolerance": 0.5, "drain_goal_s": 600.0}
    look = looks.seen(*pods, held=20)
    decision = looks.decide(look, looks.busy(rate_per_s=1.8), **tolerant)
    assert (decision.desired, decision.reason) == (2, Reason.WITHIN_TOLERANCE)
    assert decision.message.endswith(
        "nothing is starting; in 90 s, when one ordered now could help, 40 are left, and 1.9/s are "
        "needed, within 50 % of 1.6/s of 2 replicas, so it stays at 2"
    )
    longer = looks.seen(*pods, held=500)
    later = looks.decide(longer, looks.busy(rate_per_s=1.8), **tolerant)
    assert (later.desired, later.reason) == (4, Reason.BACKLOG_BEYOND_COLD_START)


def test_while_nothing_serves_no_shortfall_is_left_alone() -> None:
    starting = looks.pod("s", State.STARTING, expected_ready_s=looks.NOW_S + 80)
    tolerant = {"tolerance": 1.0, "drain_goal_s": 600.0}
    decision = looks.decide(looks.seen(starting, held=90), looks.busy(rate_per_s=1.0), **tolerant)
    assert (decision.desired, decision.reason) == (2, Reason.BACKLOG_BEYOND_COLD_START)


def test_work_under_way_is_not_cut_because_arrivals_paused() -> None:
    decision = looks.decide(
        looks.seen(looks.pod("a", load=8), looks.pod("b", load=8), looks.pod("c", load=1))
    )
    assert decision.desired == 3


def test_who_plans_with_more_than_full_replicas_gives_one_back_while_it_works() -> None:
    pods = [looks.pod("a", load=6), looks.pod("b", load=6), looks.pod("c", load=6)]
    counts = [
        looks.decide(looks.seen(*pods), looks.busy(rate_per_s=1.8), utilization=share).desired
        for share in (1.0, 1.25)
    ]
    assert counts == [3, 2]


def test_a_burst_that_will_be_gone_orders_nothing_without_headroom() -> None:
    burst = looks.seen(looks.pod("a", load=8, waiting=2), held=6)
    plain = looks.decide(burst, looks.busy(rate_per_s=0.1))
    assert (plain.desired, plain.reason) == (1, Reason.BACKLOG_WITHIN_COLD_START)
    roomy = looks.decide(burst, looks.busy(rate_per_s=0.1), burst_headroom=1.0)
    assert (roomy.desired, roomy.reason) == (2, Reason.STEADY_LOAD)
    assert roomy.message.endswith(
        "nothing is starting; a slot for each of 16 at once, which takes 2.00 replicas, so 1 → 2"
    )


def test_headroom_asks_for_nothing_more_because_requests_piled_up_while_replicas_started() -> None:
    parameters = replace(looks.PARAMETERS, burst_headroom=1.0)
    starting = looks.pod("s", State.STARTING, expected_ready_s=looks.NOW_S + 80)
    waking = looks.seen(starting, held=90)
    first, past = scaling.decide(waking, parameters, looks.busy(rate_per_s=0.1), looks.NOW_S)
    ready = looks.seen(*(looks.pod(f"p{i}", load=8) for i in range(first.desired)), held=60)
    later, _ = scaling.decide(ready, parameters, past, looks.NOW_S + 80)
    assert first.desired == looks.decide(waking, looks.busy(rate_per_s=0.1)).desired
    assert later.desired == first.desired


@pytest.mark.parametrize("spare", [1, 2])
def test_spare_replicas_that_start_are_no_load_of_a_cold_start(spare: int) -> None:
    waking = looks.seen(
        *(
            looks.pod(f"s{i}", State.STARTING, expected_ready_s=looks.NOW_S + 80)
            for i in range(1 + spare)
        ),
        held=90,
    )
    given = {"drain_goal_s": 600.0, "buffer_replicas": spare}
    roomy = looks.decide(waking, looks.busy(rate_per_s=0.1), burst_headroom=1.0, **given)
    assert roomy.desired == 1 + spare


def test_the_last_of_a_cold_starts_backlog_ask_for_no_headroom_until_they_have_ended() -> None:
    parameters = replace(looks.PARAMETERS, burst_headroom=2.0)
    piled = looks.busy(rate_per_s=0.1)._replace(piled=True, backlog_s=looks.NOW_S)
    full = looks.seen(looks.pod("a", load=8), looks.pod("b", load=8))
    last, past = scaling.decide(full, parameters, piled, looks.NOW_S + 1)
    fresh, _ = scaling.decide(full, parameters, past, looks.NOW_S + 11)
    assert (last.desired, fresh.desired) == (2, 4)
    assert last.message.endswith(
        "16 piled up while replicas started and keep 2 replicas, so it stays at 2"
    )


def test_a_backlog_found_at_a_restart_is_not_taken_for_a_burst() -> None:
    parameters = replace(looks.PARAMETERS, burst_headroom=1.0)
    backlog = looks.seen(looks.pod("a", load=8), held=40)
    restored = state.from_status(None, looks.NOW_S)
    first, past = scaling.decide(backlog, parameters, restored, looks.NOW_S)
    over, past = scaling.decide(looks.seen(looks.pod("a")), parameters, past, looks.NOW_S + 50)
    burst, _ = scaling.decide(backlog, parameters, past, looks.NOW_S + 60)
    assert first.desired == looks.decide(backlog, restored).desired == over.desired == 1
    assert burst.desired > 1


def test_a_backlog_that_went_while_a_hand_decided_says_nothing_of_the_next_burst() -> None:
    parameters = replace(looks.PARAMETERS, burst_headroom=1.0)
    by_hand = replace(parameters, mode=api.Mode.MANUAL, manual_replicas=1)
    piled = looks.busy(rate_per_s=0.1)._replace(piled=True)
    _, past = scaling.decide(looks.seen(looks.pod("a")), by_hand, piled, looks.NOW_S)
    burst = looks.seen(looks.pod("a", load=8, waiting=2), held=6)
    decision, _ = scaling.decide(burst, parameters, past, looks.NOW_S + 1)
    assert decision.desired == 2


@pytest.mark.parametrize(
    ("headroom", "expected"),
    [pytest.param(0.0, [1, 1, 1], id="none"), pytest.param(0.5, [2, 2, 1], id="half a slot")],
)
def test_the_down_window_keeps_the_room_for_a_burst(headroom: float, expected: list[int]) -> None:
    parameters = replace(looks.PARAMETERS, burst_headroom=headroom, down=windows.Direction(300.0))
    burst = looks.seen(looks.pod("a", load=8, waiting=2), looks.pod("b", load=8), count=1)
    _, past = scaling.decide(burst, parameters, looks.busy(), looks.NOW_S)
    calm, counts = looks.seen(looks.pod("a", load=1), looks.pod("b")), []
    for after_s in (1, 290, 302):
        decision, past = scaling.decide(calm, parameters, past, looks.NOW_S + after_s)
        counts.append(decision.desired)
    assert counts == expected


def test_a_small_deviation_is_left_alone() -> None:
    pods = [looks.pod(f"p{i}", load=7) for i in range(10)]
    decision = looks.decide(looks.seen(*pods), looks.busy(rate_per_s=6.8))
    assert (decision.desired, decision.reason) == (10, Reason.WITHIN_TOLERANCE)


def test_spare_replicas_stay_while_active_and_go_after_the_cooldown() -> None:
    pods = [looks.pod("a", load=1), looks.pod("b"), looks.pod("c")]
    assert (
        looks.decide(looks.seen(*pods), looks.busy(rate_per_s=0.1), buffer_replicas=2).desired == 3
    )
    idle = [looks.pod("a"), looks.pod("b"), looks.pod("c")]
    assert looks.decide(looks.seen(*idle), looks.busy(quiet_s=299), buffer_replicas=2).desired == 2
    assert looks.decide(looks.seen(*idle), looks.busy(quiet_s=301), buffer_replicas=2).desired == 0


def test_what_a_backlog_took_goes_with_it_whatever_the_down_window() -> None:
    window = {"down": windows.Direction(300.0), "up": windows.Direction()}
    parameters = replace(looks.PARAMETERS, **window)  # type: ignore[arg-type]
    pods = [looks.pod("a", load=8), looks.pod("b", load=8)]
    ordered, past = scaling.decide(
        looks.seen(*pods, held=300), parameters, looks.busy(rate_per_s=0.5), looks.NOW_S
    )
    assert ordered.desired > 5
    drained = looks.seen(*(looks.pod(f"p{i}", load=1) for i in range(ordered.desired)))
    later, _ = scaling.decide(drained, parameters, past, looks.NOW_S + 100)
    assert later.desired == 2  # as many as there were when the window began


def test_what_the_load_took_stays_for_the_down_window() -> None:
    parameters = replace(looks.PARAMETERS, down=windows.Direction(200.0))
    pods = [looks.pod(f"p{i}", load=6) for i in range(4)]
    _, past = scaling.decide(looks.seen(*pods), parameters, looks.busy(rate_per_s=2.0), looks.NOW_S)
    calm, counts = looks.seen(*(looks.pod(f"p{i}") for i in range(4))), []
    for after_s in (40, 190, 245):
        decision, past = scaling.decide(calm, parameters, past, looks.NOW_S + after_s)
        counts.append(decision.desired)
    assert counts == [4, 4, 1]


def test_an_up_window_waits_for_a_backlog_to_last() -> None:
    parameters = replace(looks.PARAMETERS, up=windows.Direction(30.0))
    flood, past = looks.seen(looks.pod("a", load=8), held=300), looks.busy(rate_per_s=0.5)
    counts = []
    for after_s in (0, 20, 31):
        decision, past = scaling.decide(flood, parameters, past, looks.NOW_S + after_s)
        counts.append(decision.desired)
    assert counts[:2] == [1, 1]
    assert counts[2] > 5
