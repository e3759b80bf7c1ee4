"""Invariant 5: who goes when a model shrinks, and that no stream is cut by it within the grace."""

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from modelserve.decide import observation, victims
from servelab.sim import running, scenario

State = observation.ReplicaState
Build = Callable[..., scenario.Scenario]

KINDS = (State.PENDING, State.UNSCHEDULABLE, State.STARTING, State.READY)
STREAMS = settings(max_examples=12, deadline=None)


@st.composite
def replicas(draw: st.DrawFn) -> list[observation.Replica]:
    count = draw(st.integers(1, 7))
    return [
        observation.Replica(
            f"p{number}",
            f"p{number}",
            draw(st.sampled_from(KINDS)),
            created_s=float(draw(st.integers(0, 3))),
            deletion_cost=draw(st.sampled_from([None, None, -2, -1, 0])),
        )
        for number in range(count)
    ]


def replica_set(found: list[observation.Replica], shrink_by: int) -> list[str]:
    """The ReplicaSet controller's choice (ActivePodsWithRanks): unassigned, not running, not ready,
    lower deletion cost, then younger ones first."""

    def rank(pod: observation.Replica) -> tuple[object, ...]:
        assigned = pod.state not in (State.PENDING, State.UNSCHEDULABLE)
        ready = pod.state is State.READY
        return assigned, ready, pod.deletion_cost or 0, -pod.created_s

    return [pod.uid for pod in sorted(found, key=rank)[:shrink_by]]


def loads(found: list[observation.Replica]) -> dict[str, float]:
    """By age and name, so that some are idle and some alike."""
    return {r.uid: float((int(r.uid[1:]) * 7 + int(r.created_s)) % 4) for r in found}


@given(found=replicas(), shrink_by=st.integers(1, 7))
def test_a_replica_set_takes_those_that_were_chosen(
    found: list[observation.Replica], shrink_by: int
) -> None:
    """Once the costs are written, both orders end with the same ready ones."""
    plan = victims.plan(found, (), loads(found), shrink_by)
    marked = [
        observation.Replica(
            each.uid,
            each.name,
            each.state,
            each.created_s,
            deletion_cost=plan.costs.get(each.uid, each.deletion_cost),
        )
        for each in found
    ]
    ready = {each.uid for each in found if each.state is State.READY}
    taken = set(replica_set(marked, shrink_by))
    assert taken & ready == set(plan.uids) & ready
    assert len(taken) == len(plan.uids)


@given(found=replicas(), shrink_by=st.integers(1, 7), stuck=st.integers(0, 6))
def test_stuck_go_first_then_pending_loading_idle_least_loaded_youngest(
    found: list[observation.Replica], shrink_by: int, stuck: int
) -> None:
    broken, load = {f"p{stuck}"}, loads(found)
    going = victims.plan(found, broken, load, shrink_by).uids

    def rank(each: observation.Replica) -> tuple[object, ...]:
        kind = 0 if each.uid in broken else 3 if each.serves else 1
        if each.state is State.STARTING and kind:
            kind = 2
        unmarked = each.deletion_cost is None or each.deletion_cost >= 0
        return kind, unmarked, load[each.uid], -each.created_s

    worst = max((rank(each) for each in found if each.uid in going), default=None)
    best = min((rank(each) for each in found if each.uid not in going), default=None)
    assert worst is None or best is None or worst <= best


@given(
    seed=st.integers(0, 1000),
    per_s=st.floats(0.5, 6),
    on_s=st.floats(20, 120),
    policy=st.sampled_from(["committed", "queue-depth"]),
)
@STREAMS
def test_no_stream_is_cut_by_a_scale_down(
    scenario_of: Build, seed: int, per_s: float, on_s: float, policy: str
) -> None:
    """Bursts make it grow, pauses make it shrink while long answers are under way."""
    spells = {"perSecond": per_s, "onSeconds": on_s, "offSeconds": 90, "seconds": 500}
    traffic: list[dict[str, Any]] = [{"onOff": spells, "output": {"median": 300, "p95": 2000}}]
    down = {"scaleDown": {"stabilizationWindowSeconds": 0}, "cooldownSeconds": 5}
    run = running.run(scenario_of(traffic, scaling=down, seed=seed), policy).models[0]
    assert (run.records.cut, run.records.failed) == (0, 0)
    assert run.records.ended == run.records.arrived
    assert any(each.after < each.before for each in run.writes) or not run.writes
