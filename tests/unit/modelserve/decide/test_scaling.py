"""One decision at a time: the rule that applies, its reason, its sentence, its numbers."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelserve.api import spec as api
from modelserve.decide import observation, record, scaling, state, windows

State = observation.ReplicaState
Reason = record.Reason
NO_WINDOW = windows.Direction(0.0, observation.DEFAULT_DOWN.rates)
PARAMETERS = observation.Parameters(
    slots=8, cold_start_s=90, service_s=10, max_replicas=32, down=NO_WINDOW
)
NOW_S = 1000.0
WINDOW_S = 22.5  # a quarter of the cold start


def pod(
    uid: str, kind: State = State.READY, load: float = 0.0, **fields: object
) -> observation.Replica:
    base = observation.Replica(uid, uid, kind, 990.0, ready_since_s=500.0, in_flight=int(load))
    if kind is State.READY:
        base = replace(base, running=load, waiting=0.0)
    return replace(base, **fields)  # type: ignore[arg-type]


def seen(
    *pods: observation.Replica, count: int | None = None, **fields: int
) -> observation.Observation:
    signal = observation.GatewaySignal(**({"live_gateways": 1} | fields))
    return observation.Observation(pods, signal, len(pods) if count is None else count)


def busy(rate_per_s: float = 0.0, quiet_s: float = 0.0) -> state.ScalerState:
    """A past with a steady arrival rate until ``quiet_s`` ago."""
    end_s = NOW_S - quiet_s
    slices = ((end_s - WINDOW_S, end_s, round(rate_per_s * WINDOW_S + 1)),) if rate_per_s else ()
    return state.ScalerState(
        service_s=10.0,
        service_samples=100,
        arrivals=slices,
        traffic_since_s=end_s - 500,
        last_active_s=end_s,
    )


def decide(
    what: observation.Observation,
    past: state.ScalerState | None = None,
    now_s: float = NOW_S,
    **changed: object,
) -> record.Decision:
    parameters = replace(PARAMETERS, **changed)  # type: ignore[arg-type]
    return scaling.decide(what, parameters, past or busy(), now_s)[0]


def test_the_first_held_request_wakes_the_model() -> None:
    decision = decide(seen(held=1, arrivals=1))
    assert (decision.desired, decision.reason) == (1, Reason.ACTIVATION)
    assert decision.next_ready_at_s == NOW_S + 90
    assert decision.wait_s == 90


def test_activation_replicas_pass_by_windows_and_rates() -> None:
    slow = windows.Direction(600.0, (windows.Rate(windows.Unit.PODS, 1, 600),))
    assert decide(seen(held=1), up=slow, activation_replicas=3).desired == 3


def test_a_refused_request_wakes_and_keeps_awake() -> None:
    assert decide(seen(refused_recently=1)).desired == 1
    assert decide(seen(pod("a"), refused_recently=1), busy(quiet_s=900)).desired == 1


def test_without_a_backlog_the_count_follows_the_arrival_rate() -> None:
    decision = decide(seen(pod("a", load=8), pod("b", load=8)), busy(rate_per_s=2.0))
    assert (decision.desired, decision.reason) == (4, Reason.STEADY_LOAD)


def test_a_backlog_that_starting_replicas_work_off_orders_nothing() -> None:
    starting = [pod(f"s{i}", State.STARTING, expected_ready_s=NOW_S + 20) for i in range(4)]
    decision = decide(seen(pod("a", load=8), *starting, held=30), busy(rate_per_s=1.0))
    assert (decision.desired, decision.reason) == (5, Reason.BACKLOG_WITHIN_COLD_START)


def test_a_backlog_beyond_the_cold_start_orders_more_and_says_why() -> None:
    starting = [pod(f"s{i}", State.STARTING, expected_ready_s=NOW_S + 41) for i in range(2)]
    decision = decide(seen(*starting, held=110), busy(rate_per_s=1.9))
    assert (decision.desired, decision.reason) == (6, Reason.BACKLOG_BEYOND_COLD_START)
    assert decision.limits == (Reason.RATE_LIMITED,)
    assert decision.message == (
        "110 requests in demand (110 held, 0 waiting, 0 running), 1.9/s arriving, 10 s each: "
        "2 replicas are starting and will be there in 41 s; in 90 s, when one ordered now could "
        "help, 204 are left, and 11.0/s are needed; the rate policies allow 6 now, so 2 → 6"
    )


def test_work_under_way_is_not_cut_because_arrivals_paused() -> None:
    decision = decide(seen(pod("a", load=8), pod("b", load=8), pod("c", load=1)))
    assert decision.desired == 3


def test_a_small_deviation_is_left_alone() -> None:
    pods = [pod(f"p{i}", load=7) for i in range(10)]
    decision = decide(seen(*pods), busy(rate_per_s=6.8))
    assert (decision.desired, decision.reason) == (10, Reason.WITHIN_TOLERANCE)


def test_spare_replicas_stay_while_active_and_go_after_the_cooldown() -> None:
    pods = [pod("a", load=1), pod("b"), pod("c")]
    assert decide(seen(*pods), busy(rate_per_s=0.1), buffer_replicas=2).desired == 3
    idle = [pod("a"), pod("b"), pod("c")]
    assert decide(seen(*idle), busy(quiet_s=299), buffer_replicas=2).desired == 2
    assert decide(seen(*idle), busy(quiet_s=301), buffer_replicas=2).desired == 0


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        pytest.param(api.QueueDepthCounts.DEMAND, 7, id="all open requests"),
        pytest.param(api.QueueDepthCounts.WAITING, 5, id="those that wait"),
    ],
)
def test_queue_depth_is_demand_over_target(counts: api.QueueDepthCounts, expected: int) -> None:
    decision = decide(
        seen(pod("a", load=8), pod("b", load=8), held=32),
        policy=api.Policy.QUEUE_DEPTH,
        counts=counts,
        target_queue_depth=7.0,
        up=windows.Direction(),
    )
    assert decision.desired == expected


@pytest.mark.parametrize(
    ("load", "expected"),
    [pytest.param(7, 1, id="within"), pytest.param(8, 2, id="beyond")],
)
def test_queue_depth_has_the_tolerance_of_the_hpa(load: int, expected: int) -> None:
    decision = decide(
        seen(pod("a", load=load)), policy=api.Policy.QUEUE_DEPTH, target_queue_depth=6.5
    )
    assert decision.desired == expected


def test_bounds_hold_whatever_the_rule_asks_for() -> None:
    most = decide(seen(pod("a", load=8), held=500), busy(2.0), max_replicas=3)
    assert (most.desired, Reason.AT_MAXIMUM in most.limits) == (3, True)
    least = decide(seen(pod("a")), busy(quiet_s=900), min_replicas=1)
    assert (least.desired, least.reason) == (1, Reason.AT_MINIMUM)


def test_the_last_replica_stays_until_the_cooldown_is_over() -> None:
    early = decide(seen(pod("a")), busy(quiet_s=200))
    assert (early.desired, early.reason) == (1, Reason.COOLDOWN)
    assert early.scale_down_at_s == early.revisit_at_s == NOW_S + 100
    over = decide(seen(pod("a")), busy(quiet_s=300))
    assert (over.desired, over.wants_zero) == (0, True)


def test_there_is_no_fence_during_a_rollout() -> None:
    rolling = replace(seen(pod("a")), rollout_in_progress=True)
    assert not decide(rolling, busy(quiet_s=900)).wants_zero


def test_a_refused_fence_is_not_asked_for_again_before_its_time() -> None:
    refused = replace(seen(pod("a")), fence_retry_s=NOW_S + 5)
    decision = decide(refused, busy(quiet_s=900))
    assert (decision.desired, decision.reason) == (1, Reason.FENCE_REFUSED)
    assert decision.revisit_at_s == NOW_S + 5


def test_a_running_request_that_only_the_engine_knows_refuses_zero() -> None:
    bypass = seen(pod("a", running=1.0))
    assert decide(bypass, busy(quiet_s=900)).desired == 1


def test_shrinking_waits_for_the_down_window() -> None:
    past = busy(0.1)._replace(recommendations=(windows.Recommended(990, 3),))
    pods = [pod("a", load=1), pod("b"), pod("c")]
    decision = decide(seen(*pods), past, down=observation.DEFAULT_DOWN)
    assert (decision.desired, decision.reason) == (3, Reason.STABILIZING_DOWN)
    assert decision.scale_down_at_s == NOW_S + 60


def test_only_replicas_soon_idle_are_taken() -> None:
    pods = [pod("a", load=4), pod("b", load=4), pod("c", load=4)]
    past = busy(0.1)._replace(service_s=200.0)
    assert decide(seen(*pods), past).desired == 3
    assert decide(seen(*pods, pod("d")), past).desired == 3
    assert decide(seen(*pods, pod("d")), past).victims == ("d",)


def test_nothing_shrinks_while_an_admitted_replica_is_not_ready_yet() -> None:
    admitted = pod("b", State.ADMITTED, running=0.0, waiting=0.0)
    assert decide(seen(pod("a"), admitted), busy(0.1)).desired == 2


def test_no_signal_holds_the_count_and_says_so() -> None:
    decision = decide(seen(pod("a", running=None, waiting=None), live_gateways=0))
    assert (decision.desired, decision.reason) == (1, Reason.NO_SIGNAL)
    assert not decision.signal_ok


def blind(count: int) -> observation.Observation:
    return seen(*(pod(f"p{i}", running=None, waiting=None) for i in range(count)), live_gateways=0)


def test_fallback_replicas_act_once_nothing_was_known_for_a_while() -> None:
    parameters, past = replace(PARAMETERS, fallback_replicas=4), busy()
    first, past = scaling.decide(blind(1), parameters, past, NOW_S)
    assert (first.desired, first.revisit_at_s) == (1, NOW_S + 10)
    later, past = scaling.decide(blind(1), parameters, past, NOW_S + 10)
    assert (later.desired, later.reason) == (4, Reason.FALLBACK)
    assert "fallbackReplicas is 4" in later.message
    known, past = scaling.decide(seen(pod("a", load=4)), parameters, past, NOW_S + 11)
    assert (known.desired, past.silent_since_s) == (1, None)


def test_fallback_replicas_never_shrink_nor_pass_the_bounds() -> None:
    past = busy()._replace(silent_since_s=NOW_S - 60)
    assert decide(blind(6), past, fallback_replicas=4).desired == 6
    assert decide(blind(1), past, fallback_replicas=40, max_replicas=8).desired == 8
    assert decide(blind(1), past, fallback_replicas=0).desired == 1


def test_a_missing_sample_stops_shrinking_but_not_growing() -> None:
    blind = pod("b", running=None, waiting=None)
    assert decide(seen(pod("a"), blind), busy(0.1)).reason is Reason.NO_SIGNAL
    assert decide(seen(pod("a", load=10), blind, held=200), busy(2.0)).desired > 2


def test_after_a_restart_nothing_shrinks_for_one_down_window_but_waking_acts() -> None:
    past = busy(quiet_s=900)._replace(restored_at_s=NOW_S - 10)
    window = observation.DEFAULT_DOWN
    assert decide(seen(pod("a")), past, down=window).desired == 1
    assert decide(seen(pod("a")), past, down=window).scale_down_at_s == NOW_S + 60
    assert decide(seen(held=1), past, down=window).desired == 1


@pytest.mark.parametrize("replicas", [0, 1, 40])
def test_manual_is_spec_replicas_whatever_the_demand(replicas: int) -> None:
    decision = decide(
        seen(pod("a"), held=9), mode=api.Mode.MANUAL, manual_replicas=replicas, max_replicas=8
    )
    assert (decision.desired, decision.reason) == (replicas, Reason.MANUAL)
    assert not decision.wants_zero


def test_dry_run_freezes_the_count_and_says_what_it_would_do() -> None:
    decision = decide(seen(held=5), mode=api.Mode.DRY_RUN)
    assert (decision.desired, decision.reason) == (0, Reason.DRY_RUN)
    assert "it would be 1" in decision.message


def test_scale_up_only_never_shrinks() -> None:
    assert decide(seen(pod("a")), busy(quiet_s=900), mode=api.Mode.SCALE_UP_ONLY).desired == 1
    assert decide(seen(held=5), mode=api.Mode.SCALE_UP_ONLY).desired == 1


def test_at_most_one_replica_is_left_without_gpus() -> None:
    room = observation.GpuRoom(replicas=1)
    decision = decide(seen(pod("a", load=8), held=300), busy(2.0), gpus=room)
    assert decision.desired == 3
    assert Reason.INSUFFICIENT_GPU in decision.limits
    assert decision.missing_gpu_replicas == 3
    assert "the GPUs are enough for 2 replicas, 3 short, one left pending" in decision.message


def test_a_replica_without_gpus_is_told_of_in_the_message() -> None:
    lost = pod("u", State.UNSCHEDULABLE, created_s=900.0)
    decision = decide(seen(lost, held=1), gpus=observation.GpuRoom(replicas=0))
    assert Reason.INSUFFICIENT_GPU in decision.limits
    assert "; 1 replica without GPUs, so it stays at 1" in decision.message


def test_where_a_pool_can_grow_pending_pods_make_the_nodes_come() -> None:
    room = observation.GpuRoom(replicas=0, can_grow=True, provision_s=60)
    assert decide(seen(pod("a", load=8), held=300), busy(2.0), gpus=room).desired == 5


def test_pods_that_no_node_takes_are_given_up_but_for_one() -> None:
    lost = [pod(f"u{i}", State.UNSCHEDULABLE, created_s=900.0) for i in range(4)]
    decision = decide(seen(pod("a", load=8), *lost, held=300), busy(2.0))
    assert (decision.desired, decision.reason) == (2, Reason.INSUFFICIENT_GPU)
    assert decision.stuck_uids == ("u0", "u1", "u2", "u3")


def test_broken_replicas_are_deleted_one_by_one() -> None:
    both, rest = seen(pod("a", State.STUCK), pod("b", State.STUCK)), seen(pod("b", State.STUCK))
    past, deleted = busy(), []
    for after_s, what in ((0, both), (10, both), (20, rest), (31, rest)):
        decision, past = scaling.decide(what, PARAMETERS, past, NOW_S + after_s)
        deleted.append(decision.delete_uids)
    assert deleted == [("a",), ("a",), (), ("b",)]


def test_a_crash_loop_never_makes_the_count_grow() -> None:
    assert decide(seen(pod("a", State.STUCK), held=1)).desired == 1


def test_a_late_replica_is_kept_and_replaced_once() -> None:
    late = pod("a", State.STARTING, created_s=800.0)
    assert decide(seen(late, held=1)).desired == 2
    later = pod("b", State.STARTING, created_s=810.0)
    assert decide(seen(late, later, held=1)).desired == 2


def test_a_foreign_count_is_left_alone_for_a_window_and_then_taken_back() -> None:
    foreign = replace(seen(pod("a", load=8), pod("b", load=8)), written_count=1)
    parameters = replace(PARAMETERS, down=observation.DEFAULT_DOWN)
    first, past = scaling.decide(foreign, parameters, busy(0.1), NOW_S)
    assert (first.write, first.reason, first.conflict) == (False, Reason.CONFLICT, True)
    later, past = scaling.decide(foreign, parameters, past, NOW_S + 60)
    assert later.force
    again, _ = scaling.decide(foreign, parameters, past, NOW_S + 130)
    assert again.revisit_at_s is not None
    assert not again.force


def test_a_foreign_zero_is_taken_back_at_once_when_requests_are_held() -> None:
    decision = decide(replace(seen(held=1, count=0), written_count=2))
    assert (decision.force, decision.desired) == (True, 1)


def test_a_wake_by_hand_starts_the_model_and_keeps_it_awake() -> None:
    assert decide(replace(seen(), wake=True)).desired == 1
    awake = replace(seen(pod("a")), awake_until_s=NOW_S + 50)
    assert decide(awake, busy(quiet_s=900)).desired == 1


def test_a_model_at_rest_asks_not_to_be_looked_at_again() -> None:
    decision = decide(seen(), busy(quiet_s=900))
    assert decision.revisit_at_s is None
    assert not decision.changes


def test_a_decision_that_asks_to_be_revisited_names_a_later_instant() -> None:
    decision = decide(seen(pod("a", load=3), held=2), busy(1.0))
    assert decision.revisit_at_s is not None
    assert decision.revisit_at_s > NOW_S


def test_the_inputs_are_the_numbers_used() -> None:
    decision = decide(seen(pod("a", load=8), held=4), busy(1.0))
    assert decision.inputs["demand"] == 12
    assert decision.inputs["backlog"] == 4
    assert decision.inputs["arrival_rate_per_s"] == pytest.approx(1.0, abs=0.03)


ODD = st.one_of(st.none(), st.floats(), st.sampled_from([-1.0, 1e300]))
PODS = st.lists(
    st.builds(
        observation.Replica,
        uid=st.uuids().map(str),
        name=st.just("p"),
        state=st.sampled_from(State),
        created_s=st.floats(0, 1000),
        started_s=st.none() | st.floats(0, 1000),
        ready_since_s=st.none() | st.floats(0, 1000),
        expected_ready_s=st.none() | st.floats(0, 2000),
        in_flight=st.integers(-5, 2_000_000),
        waiting=ODD,
        running=ODD,
        deletion_cost=st.none() | st.integers(-3, 3),
    ),
    max_size=6,
)
SIGNALS = st.builds(
    observation.GatewaySignal,
    live_gateways=st.integers(0, 2),
    held=st.integers(-1, 2_000_000),
    refused_recently=st.integers(0, 1000),
    arrivals=st.integers(0, 10_000),
    completions=st.integers(0, 10_000),
    service_sum_s=st.floats(),
)


@given(
    pods=PODS,
    signal=SIGNALS,
    count=st.integers(0, 10),
    mode=st.sampled_from([api.Mode.AUTO, api.Mode.SCALE_UP_ONLY]),
    policy=st.sampled_from(api.Policy),
    quiet_s=st.floats(0, 2000),
)
@settings(deadline=None)
def test_no_figures_raise_and_unknown_ones_never_shrink(
    pods: list[observation.Replica],
    signal: observation.GatewaySignal,
    count: int,
    mode: api.Mode,
    policy: api.Policy,
    quiet_s: float,
) -> None:
    what = observation.Observation(tuple(pods), signal, count)
    decision = decide(what, busy(1.0, quiet_s), mode=mode, policy=policy)
    assert 0 <= decision.desired <= 32
    unplaced = sum(p.state is State.UNSCHEDULABLE for p in pods)
    unknown = any(p.serves and (p.waiting is None or p.running is None) for p in pods)
    if unknown or not signal.live_gateways:
        assert decision.desired >= count - unplaced
    if signal.live_gateways and 0 < signal.held < 1e6:
        assert decision.desired >= 1
