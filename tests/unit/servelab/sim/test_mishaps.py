"""What goes wrong on nodes and in pods: it shows in a run as it would on a cluster."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from modelserve.decide.observation import ReplicaState as State
from servelab.sim import running, scenario
from servelab.sim.deployment import Deployment
from servelab.sim.service import Service
from servelab.workload.arrivals import Arrival

Build = Callable[..., scenario.Scenario]
Serve = Callable[..., Service]
Play = Callable[[Service, float], None]

TWO_NODES = {"gpu": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 4, "nodes": 2}


@pytest.fixture
def ill(scenario_of: Build, service_of: Serve) -> Callable[..., Service]:
    """A model whose nodes have these faults; one replica is asked for at 0, ready by 30."""

    def build(*faults: dict[str, Any], count: int = 1, **others: Any) -> Service:
        pools = [{**TWO_NODES, "faults": list(faults), **others}]
        service = service_of(scenario_of(pools=pools))
        service.deployment.scale(count, (), 0.0)
        return service

    return build


def states(deployment: Deployment) -> Sequence[State]:
    return [each.state for each in deployment.replicas.values()]


def test_a_registry_that_fails_is_asked_again_after_the_back_off(
    ill: Callable[..., Service], play: Play
) -> None:
    service = ill({"type": "ImagePullError", "durationSeconds": 40})
    play(service, 5)
    assert states(service.deployment) == [State.STUCK]
    play(service, 150)
    assert states(service.deployment) == [State.READY]
    # With 10, 20 and 40 s to wait, and a sync each 12.5 s: the fourth try is at 87.5 s.
    assert service.deployment.ledger.measured[0].image_pull_s == pytest.approx(88, abs=3)


@pytest.mark.parametrize("kind", ["CorruptWeights", "OutOfGPUMemory", "CrashLoop", "XID"])
def test_an_engine_that_dies_is_started_again_until_it_lives(
    ill: Callable[..., Service], play: Play, kind: str
) -> None:
    service = ill({"type": kind, "durationSeconds": 45})
    seen = set()
    for at_s in range(60):
        play(service, at_s)
        seen |= set(states(service.deployment))
    assert State.STUCK in seen
    play(service, 200)
    assert states(service.deployment) == [State.READY]


def test_only_that_share_of_pods_is_struck_and_others_with_another_seed(
    scenario_of: Build,
) -> None:
    fault = {"type": "CorruptWeights", "probability": 0.3}
    pools = [{**TWO_NODES, "faults": [fault]}]
    found = scenario_of([{"steady": {"perSecond": 0.1, "seconds": 300}}], pools=pools)
    counts = [
        max(n for _, n in running.run(found, "fixed-8", seed=seed).models[0].ledger.ready)
        for seed in range(4)
    ]
    assert 3 <= min(counts) <= max(counts) <= 8
    assert len(set(counts)) > 1


@pytest.mark.parametrize(
    ("fault", "part"),
    [
        pytest.param({"type": "SlowStorage", "factor": 10}, "weight_load_s", id="storage"),
        pytest.param({"type": "SlowRegistry", "factor": 10}, "image_pull_s", id="registry"),
    ],
)
def test_slow_paths_make_that_part_of_a_cold_start_longer(
    scenario_of: Build, service_of: Serve, play: Play, fault: dict[str, Any], part: str
) -> None:
    took = []
    for faults in ([], [fault]):
        image = {"coldStart": {"imageSize": "9GB", "warmUpSeconds": 5}}
        pools = [{**TWO_NODES, "faults": faults}]
        service = service_of(scenario_of(spec=image, pools=pools))
        service.deployment.scale(1, (), 0.0)
        play(service, 2000)
        took.append(getattr(service.deployment.ledger.measured[0], part))
    assert took[1] > 2 * took[0]


def test_a_hung_engine_is_unready_and_answers_when_it_goes_on(
    ill: Callable[..., Service], play: Play
) -> None:
    service = ill({"type": "HungEngine", "afterSeconds": 40, "durationSeconds": 60})
    play(service, 39)
    service.arrive(Arrival(39, 100, 500), None, 39.0)
    play(service, 60)
    assert states(service.deployment) == [State.STARTING]
    assert service.records.completed == 0
    play(service, 130)
    assert states(service.deployment) == [State.READY]
    assert service.records.e2e_s[0] > 60


def test_a_slow_engine_takes_that_many_times_as_long(
    ill: Callable[..., Service], play: Play
) -> None:
    service = ill({"type": "SlowEngine", "factor": 4, "afterSeconds": 100})
    for at_s in (40.0, 140.0):
        play(service, at_s)
        service.arrive(Arrival(at_s, 100, 100), None, at_s)
    play(service, 300)
    well, slow = service.records.tpot_s
    assert slow == pytest.approx(4 * well, rel=0.05)


@pytest.mark.parametrize("kind", ["NodeLost", "LeaseLapse"])
def test_pods_of_a_silent_node_are_replaced_elsewhere(
    ill: Callable[..., Service], play: Play, kind: str
) -> None:
    """Thought dead after 50 s, evicted after 300 more; they end once the node is back."""
    fault = {"type": kind, "afterSeconds": 40, "durationSeconds": 1000, "nodes": ["pool-0"]}
    service = ill(fault)
    play(service, 80)
    assert states(service.deployment) == [State.READY]
    play(service, 100)
    assert states(service.deployment) == [State.STARTING]
    play(service, 500)
    assert states(service.deployment) == [State.TERMINATING, State.READY]
    assert [each.node.name for each in service.deployment.replicas.values() if each.node] == [
        "pool-0",
        "pool-1",
    ]
    play(service, 1100)
    assert states(service.deployment) == [State.READY]


@pytest.mark.parametrize("kind", ["NodeLost", "LeaseLapse"])
@pytest.mark.parametrize(("lasts_s", "since_s"), [(45, 0), (200, 210)], ids=["short", "long"])
def test_a_start_on_a_node_thought_dead_is_given_its_time_anew_on_the_return(
    scenario_of: Build, service_of: Serve, play: Play, kind: str, lasts_s: float, since_s: float
) -> None:
    """As for an operator that sees the node report again: a short silence is none to it."""
    fault = {"type": kind, "afterSeconds": 10, "durationSeconds": lasts_s}
    slow = {"coldStart": {"imageSize": "1MB", "warmUpSeconds": 400}}
    service = service_of(
        scenario_of(spec=slow, pools=[{**TWO_NODES, "nodes": 1, "faults": [fault]}])
    )
    service.deployment.scale(1, (), 0.0)
    (replica,) = service.deployment.replicas.values()
    seen = []
    for at_s in (205, 215):
        play(service, at_s)
        seen.append(replica.observed(0, at_s))
    assert [each.away for each in seen] == [since_s > 0, False]
    assert [each.state for each in seen] == [State.STARTING] * 2
    assert [each.started_s for each in seen] == [0, since_s]


@pytest.mark.parametrize("seed", range(6))
def test_a_node_that_may_be_lost_is_lost_with_all_its_pods_or_not_at_all(
    ill: Callable[..., Service], play: Play, seed: int
) -> None:
    fault = {"type": "NodeLost", "afterSeconds": 40, "probability": 0.5, "seed": seed}
    service = ill(fault, count=4, nodes=1)
    play(service, 100)
    lost = next(iter(service.place.nodes)).cut_off
    assert set(states(service.deployment)) == {State.STARTING if lost else State.READY}
    service.arrive(Arrival(100, 100, 10), None, 100.0)
    play(service, 110)
    assert service.records.completed == (not lost)


def test_gpus_that_vanish_take_no_new_pods_and_leave_what_runs(
    ill: Callable[..., Service], play: Play
) -> None:
    service = ill({"type": "GPUsVanish", "afterSeconds": 40, "durationSeconds": 100})
    play(service, 50)
    service.deployment.scale(2, (), 50.0)
    play(service, 130)
    assert states(service.deployment) == [State.READY, State.UNSCHEDULABLE]
    play(service, 200)
    assert states(service.deployment) == [State.READY, State.READY]


def test_a_spot_node_goes_after_its_notice_and_another_comes(
    ill: Callable[..., Service], play: Play
) -> None:
    fault = {"type": "SpotReclaim", "afterSeconds": 40, "noticeSeconds": 30, "nodes": ["pool-0"]}
    service = ill(fault, count=5, nodes=1, gpusPerNode=5)
    play(service, 39)
    service.arrive(Arrival(39, 100, 30_000), None, 39.0)
    before = list(service.place.nodes)
    play(service, 69)
    assert set(states(service.deployment)) == {State.TERMINATING, State.UNSCHEDULABLE}
    play(service, 105)
    assert set(states(service.deployment)) == {State.READY}
    assert service.records.cut == 1
    assert before != list(service.place.nodes)


def test_the_operator_replaces_what_crashes_for_ever(scenario_of: Build) -> None:
    """Half of the pods never start; those that do serve everything."""
    fault = {"type": "CorruptWeights", "probability": 0.5}
    pools = [{**TWO_NODES, "faults": [fault]}]
    traffic = [{"poisson": {"perSecond": 2, "seconds": 900}, "output": 300}]
    run = running.run(scenario_of(traffic, pools=pools, seed=3), "committed").models[0]
    assert run.records.completed + run.records.expired == run.records.arrived
    assert run.records.completed > 0.9 * run.records.arrived
    assert run.ledger.cold_starts > len(run.ledger.cold_start_s)


def test_faults_of_the_pod_template_count_from_the_pods_start(
    scenario_of: Build, service_of: Serve, play: Play
) -> None:
    said = '[{"type": "CrashLoop", "afterSeconds": 60, "durationSeconds": 1}]'
    template = {"template": {"annotations": {"emulator.modelserve.dev/faults": said}}}
    service = service_of(scenario_of(spec=template))
    service.deployment.scale(1, (), 0.0)
    play(service, 59)
    service.deployment.scale(2, (), 59.0)
    play(service, 61)
    assert states(service.deployment) == [State.STARTING, State.STARTING]
    play(service, 90)
    assert states(service.deployment) == [State.READY, State.READY]
