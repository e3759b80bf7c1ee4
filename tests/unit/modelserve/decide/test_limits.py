"""What keeps a count from what the rule asks for: bounds, windows, caution, zero, GPUs."""

from dataclasses import replace

from modelserve.decide import observation, record, windows
from modelserve.testing import looks

Reason = record.Reason
State = observation.ReplicaState


def test_bounds_hold_whatever_the_rule_asks_for() -> None:
    most = looks.decide(
        looks.seen(looks.pod("a", load=8), held=500), looks.busy(2.0), max_replicas=3
    )
    assert (most.desired, Reason.AT_MAXIMUM in most.limits) == (3, True)
    least = looks.decide(looks.seen(looks.pod("a")), looks.busy(quiet_s=900), min_replicas=1)
    assert (least.desired, least.reason) == (1, Reason.AT_MINIMUM)


def test_the_last_replica_stays_until_the_cooldown_is_over() -> None:
    early = looks.decide(looks.seen(looks.pod("a")), looks.busy(quiet_s=200))
    assert (early.desired, early.reason) == (1, Reason.COOLDOWN)
    assert early.scale_down_at_s == early.revisit_at_s == looks.NOW_S + 100
    over = looks.decide(looks.seen(looks.pod("a")), looks.busy(quiet_s=300))
    assert (over.desired, over.wants_zero) == (0, True)


def test_there_is_no_fence_during_a_rollout() -> None:
    rolling = replace(looks.seen(looks.pod("a")), rollout_in_progress=True)
    assert not looks.decide(rolling, looks.busy(quiet_s=900)).wants_zero


def test_a_refused_fence_is_not_asked_for_again_before_its_time() -> None:
    refused = replace(looks.seen(looks.pod("a")), fence_retry_s=looks.NOW_S + 5)
    decision = looks.decide(refused, looks.busy(quiet_s=900))
    assert (decision.desired, decision.reason) == (1, Reason.FENCE_REFUSED)
    assert decision.revisit_at_s == looks.NOW_S + 5


def test_a_running_request_that_only_the_engine_knows_refuses_zero() -> None:
    bypass = looks.seen(looks.pod("a", running=1.0))
    assert looks.decide(bypass, looks.busy(quiet_s=900)).desired == 1


def test_shrinking_waits_for_the_down_window() -> None:
    past = looks.busy(0.1)._replace(recommendations=(windows.Recommended(990, 3),))
    pods = [looks.pod("a", load=1), looks.pod("b"), looks.pod("c")]
    decision = looks.decide(looks.seen(*pods), past, down=observation.DEFAULT_DOWN)
    assert (decision.desired, decision.reason) == (3, Reason.STABILIZING_DOWN)
    assert decision.scale_down_at_s == looks.NOW_S + 60


def test_only_replicas_soon_idle_are_taken() -> None:
    pods = [looks.pod("a", load=4), looks.pod("b", load=4), looks.pod("c", load=4)]
    past = looks.busy(0.1, service_s=200.0)
    assert looks.decide(looks.seen(*pods), past).desired == 3
    assert looks.decide(looks.seen(*pods, looks.pod("d")), past).desired == 3
    assert looks.decide(looks.seen(*pods, looks.pod("d")), past).victims == ("d",)


def test_nothing_shrinks_while_an_admitted_replica_is_not_ready_yet() -> None:
    admitted = looks.pod("b", State.ADMITTED, running=0.0, waiting=0.0)
    assert looks.decide(looks.seen(looks.pod("a"), admitted), looks.busy(0.1)).desired == 2


def test_a_missing_sample_stops_shrinking_but_not_growing() -> None:
    blind = looks.pod("b", running=None, waiting=None)
    assert (
        looks.decide(looks.seen(looks.pod("a"), blind), looks.busy(0.1)).reason is Reason.NO_SIGNAL
    )
    assert (
        looks.decide(looks.seen(looks.pod("a", load=10), blind, held=200), looks.busy(2.0)).desired
        > 2
    )


def test_after_a_restart_nothing_shrinks_for_one_down_window_but_waking_acts() -> None:
    past = looks.busy(quiet_s=900)._replace(restored_at_s=looks.NOW_S - 10)
    window = observation.DEFAULT_DOWN
    assert looks.decide(looks.seen(looks.pod("a")), past, down=window).desired == 1
    assert (
        looks.decide(looks.seen(looks.pod("a")), past, down=window).scale_down_at_s
        == looks.NOW_S + 60
    )
    assert looks.decide(looks.seen(held=1), past, down=window).desired == 1


def test_at_most_one_replica_is_left_without_gpus() -> None:
    room = observation.GpuRoom(replicas=1)
    decision = looks.decide(
        looks.seen(looks.pod("a", load=8), held=300), looks.busy(2.0), gpus=room
    )
    assert decision.desired == 3
    assert Reason.INSUFFICIENT_GPU in decision.limits
    assert decision.missing_gpu_replicas == 3
    assert "the GPUs are enough for 2 replicas, 3 short, one left pending" in decision.message


def test_a_replica_without_gpus_is_told_of_in_the_message() -> None:
    lost = looks.pod("u", State.UNSCHEDULABLE, created_s=900.0)
    decision = looks.decide(looks.seen(lost, held=1), gpus=observation.GpuRoom(replicas=0))
    assert Reason.INSUFFICIENT_GPU in decision.limits
    assert "; 1 replica without GPUs, so it stays at 1" in decision.message


def test_where_a_pool_can_grow_pending_pods_make_the_nodes_come() -> None:
    room = observation.GpuRoom(replicas=0, can_grow=True, provision_s=60)
    assert (
        looks.decide(
            looks.seen(looks.pod("a", load=8), held=300), looks.busy(2.0), gpus=room
        ).desired
        == 5
    )


def test_pods_that_no_node_takes_are_given_up_but_for_one() -> None:
    lost = [looks.pod(f"u{i}", State.UNSCHEDULABLE, created_s=900.0) for i in range(4)]
    decision = looks.decide(looks.seen(looks.pod("a", load=8), *lost, held=300), looks.busy(2.0))
    assert (decision.desired, decision.reason) == (2, Reason.INSUFFICIENT_GPU)
    assert decision.stuck_uids == ("u0", "u1", "u2", "u3")
