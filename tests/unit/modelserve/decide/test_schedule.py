"""Time alone changes an answer only when a later look was asked for: over worlds made by chance."""

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelserve.api import spec as api
from modelserve.decide import judging, observation, record, scaling, state, traffic, windows
from modelserve.testing import looks

State = observation.ReplicaState
Reason = record.Reason
Random = random.Random
# As long as nobody looks.
REST_S = 8000.0
DOWN, UP = observation.DEFAULT_DOWN.rates, observation.DEFAULT_UP.rates
ROOMS = (
    observation.GpuRoom(),
    observation.GpuRoom(0),
    observation.GpuRoom(3),
    observation.GpuRoom(0, can_grow=True, provision_s=120.0),
)


def ago(rng: Random) -> float:
    return float(rng.randint(0, rng.choice((30, 700, 4000))))


def parameters(rng: Random) -> observation.Parameters:
    return observation.Parameters(
        slots=8,
        cold_start_s=rng.choice((20.0, 90.0, 600.0)),
        service_s=rng.choice((1.0, 10.0)),
        min_replicas=rng.choice((0, 0, 0, 1, 2)),
        max_replicas=rng.choice((2, 3, 32)),
        mode=rng.choice([api.Mode.AUTO] * 5 + list(api.Mode)),
        policy=rng.choice(list(api.Policy)),
        utilization=rng.choice((0.8, 0.8, 1.5)),
        buffer_replicas=rng.choice((0, 0, 0, 1)),
        burst_headroom=rng.choice((0.0, 0.0, 1.0, 2.5)),
        up=windows.Direction(rng.choice((0.0, 0.0, 30.0)), UP),
        down=windows.Direction(rng.choice((0.0, 60.0, 300.0)), DOWN),
        cooldown_s=rng.choice((0.0, 30.0, 300.0)),
        fallback_replicas=rng.choice((None, None, 2)),
        gpus=rng.choice(ROOMS),
    )


def pod(rng: Random, uid: str, load: float, now_s: float) -> observation.Replica:
    kind = rng.choice([State.READY] * 5 + list(State))
    serves, starts = kind in (State.READY, State.ADMITTED), kind is State.STARTING
    open_here = load if serves or kind is State.TERMINATING else 0.0
    sampled = serves and rng.random() < 0.9
    return observation.Replica(
        uid=uid,
        name=uid,
        state=kind,
        created_s=now_s - ago(rng),
        started_s=now_s - ago(rng) if starts and rng.random() < 0.5 else None,
        ready_since_s=now_s - ago(rng) if serves else None,
        expected_ready_s=now_s + ago(rng) if starts and rng.random() < 0.5 else None,
        predicted_s=rng.choice((None, 20.0, 90.0, 400.0)),
        unschedulable_since_s=now_s - ago(rng) if kind is State.UNSCHEDULABLE else None,
        in_flight=int(open_here),
        waiting=max(0.0, open_here - 8) if sampled else None,
        running=min(8.0, open_here) if sampled else None,
    )


def look(rng: Random, now_s: float) -> observation.Observation:
    idle = rng.random() < 0.6
    loads = (0.0,) if idle else (0.0, 0.0, 1.0, 3.0, 8.0, 12.0)
    named = [f"p{i} of {now_s}" for i in range(rng.choice((0, 1, 1, 2, 3, 5)))]
    pods = tuple(pod(rng, uid, rng.choice(loads), now_s) for uid in named)
    staying = sum(each.state is not State.TERMINATING for each in pods)
    count = max(0, staying + rng.choice((0, 0, 0, 0, 0, 1, 2, -1)))
    signal = observation.GatewaySignal(
        live_gateways=rng.choice((1, 1, 1, 1, 1, 1, 0)),
        held=0 if idle else rng.choice((0, 0, 1, 30)),
        refused_recently=0 if idle else rng.choice((0, 0, 0, 2)),
        arrivals=rng.choice((0, 0, 0, 1, 2, 20)),
    )
    return observation.Observation(
        pods,
        signal,
        count,
        written_count=rng.choice([None, *[count] * 6, count + 1]),
        rollout_in_progress=rng.random() < 0.1,
        wake=rng.random() < 0.05,
        awake_until_s=rng.choice([*[None] * 6, now_s + 45]),
        fence_retry_s=rng.choice([*[None] * 6, now_s + 7]),
    )


def carried_out(
    rng: Random, seen: observation.Observation, decision: record.Decision, now_s: float
) -> observation.Observation:
    """What is seen when the decision has been acted on; nothing more came from the gateways."""
    seen = replace(seen, signal=replace(seen.signal, arrivals=0))
    if not (decision.changes or decision.delete_uids):
        return seen
    gone = {*decision.victims, *decision.delete_uids}
    pods = [each for each in seen.replicas if each.uid not in gone]
    count = decision.desired if decision.changes else seen.live_count
    staying = sum(each.state is not State.TERMINATING for each in pods)
    for number in range(staying, count):
        kind = rng.choice((State.PENDING, State.STARTING, State.UNSCHEDULABLE))
        pods.append(looks.pod(f"n{number} of {now_s}", kind, created_s=now_s, ready_since_s=None))
    written = count if decision.changes else seen.written_count
    return replace(seen, replicas=tuple(pods), live_count=count, written_count=written, wake=False)


def past_of(
    rng: Random, chosen: observation.Parameters
) -> tuple[observation.Observation, state.ScalerState, float]:
    """A model that has had some past and has just been looked at: nothing is left to be done."""
    now_s = looks.NOW_S
    past = state.ScalerState(restored_at_s=rng.choice((None, now_s - 5)))
    seen, eventful = look(rng, now_s), rng.randint(0, 3)
    for turn in range(eventful + 6):
        decision, past = scaling.decide(seen, chosen, past, now_s)
        seen = carried_out(rng, seen, decision, now_s)
        if turn < eventful:
            now_s += rng.choice((0.0, 0.5, 5.0, 40.0, 200.0, 500.0))
            seen = look(rng, now_s) if rng.random() < 0.4 else seen
    return seen, past, now_s


def told(decision: record.Decision) -> dict[str, Any]:
    """What a decision does, and what the status' conditions say of it."""
    reason = decision.reason
    if reason is Reason.WITHIN_TOLERANCE:
        reason = Reason.STEADY_LOAD  # a fading rate crosses the tolerance now and then
    limits = [limit for limit in judging.LIMITS if limit in decision.limits]
    names = ("desired", "write", "force", "conflict", "signal_ok", "active", "wants_zero")
    what = {name: getattr(decision, name) for name in (*names, "delete_uids", "stuck_uids")}
    short = bool(decision.missing_gpu_replicas)
    return {**what, "reason": reason, "limit": limits[:1], "short of GPUs": short}


@settings(max_examples=1000, deadline=None)
@given(st.integers(0, 2**48))
def test_time_alone_changes_an_answer_only_when_a_later_look_was_asked_for(seed: int) -> None:
    rng = Random(seed)
    chosen = parameters(rng)
    seen, past, now_s = past_of(rng, chosen)
    decision, past = scaling.decide(seen, chosen, past, now_s)
    again_s = now_s + REST_S if decision.revisit_at_s is None else decision.revisit_at_s
    # With requests about, the answer changes all the time, and a tenth of a window is soon enough.
    slack_s = max(chosen.snapshot_s, traffic.window_s(past.known, chosen) / 10)
    until_s = again_s - (slack_s if decision.active else 1e-3)
    for share in (*((k / 12) ** 2 for k in range(1, 12)), rng.random(), 1.0):
        at_s = min(until_s, now_s + (again_s - now_s) * share)
        if at_s > now_s:
            later, _ = scaling.decide(seen, chosen, past, at_s)
            assert told(later) == told(decision), f"after {at_s - now_s} of {again_s - now_s} s"


@pytest.mark.parametrize("arrivals", [1, 20])
def test_a_model_at_zero_is_not_woken_by_requests_that_did_not_wait(arrivals: int) -> None:
    went = looks.seen(arrivals=arrivals)
    decision, past = scaling.decide(went, looks.PARAMETERS, state.ScalerState(), looks.NOW_S)
    for after_s in (0.0, 11.0, 60.0, 200.0):
        at_s = looks.NOW_S + after_s
        decision, past = scaling.decide(looks.seen(), looks.PARAMETERS, past, at_s)
        assert decision.desired == 0


@pytest.mark.parametrize("mode", [api.Mode.DRY_RUN, api.Mode.SCALE_UP_ONLY])
def test_a_mode_that_writes_nothing_still_looks_when_a_limit_ends(mode: api.Mode) -> None:
    chosen = replace(looks.PARAMETERS, mode=mode, down=observation.DEFAULT_DOWN)
    past = looks.busy()._replace(recommendations=(windows.Recommended(looks.NOW_S, 2),))
    seen = looks.seen(looks.pod("a"), looks.pod("b"))
    decision, _ = scaling.decide(seen, chosen, past, looks.NOW_S)
    assert decision.revisit_at_s == looks.NOW_S + chosen.down.window_s
