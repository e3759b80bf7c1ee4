"""One model by itself: its replicas' life, and what a scale-down does to streams."""

from collections.abc import Callable

import pytest

from modelserve.decide.observation import ReplicaState
from servelab.sim import scenario
from servelab.sim.service import Service
from servelab.workload.arrivals import Arrival

Build = Callable[..., scenario.Scenario]
Serve = Callable[..., Service]
Play = Callable[[Service, float], None]


@pytest.mark.parametrize(
    ("drain_s", "completed", "cut"), [pytest.param(600, 3, 0), pytest.param(1, 0, 3)]
)
def test_streams_have_the_grace_and_no_more(
    scenario_of: Build, service_of: Serve, play: Play, drain_s: int, completed: int, cut: int
) -> None:
    service = service_of(scenario_of(spec={"drainSeconds": drain_s}))
    service.deployment.scale(1, (), 0.0)
    play(service, 100)
    for _ in range(3):
        service.arrive(Arrival(100, 100, 2000), None, 100.0)
    play(service, 101)
    service.deployment.scale(0, (), 101.0)
    play(service, 400)
    assert (service.records.completed, service.records.cut) == (completed, cut)
    assert not service.deployment.replicas
    assert not service.gateway.in_flight


def test_a_cold_start_takes_what_is_predicted_within_its_jitter(
    scenario_of: Build, service_of: Serve, play: Play
) -> None:
    service = service_of(scenario_of())
    service.deployment.scale(1, (), 0.0)
    play(service, 100)
    predicted_s = service.assessment.cold_start().total_s
    assert service.deployment.ledger.cold_start_s == [pytest.approx(predicted_s, rel=0.04)]


def test_replicas_on_one_node_share_the_image_pull_and_the_links(
    scenario_of: Build, service_of: Serve, play: Play
) -> None:
    """The pull is done once; weights read at the same time take their time together."""
    image = {"coldStart": {"imageSize": "9GB", "warmUpSeconds": 5}}
    one, eight = service_of(scenario_of(spec=image)), service_of(scenario_of(spec=image))
    one.deployment.scale(1, (), 0.0)
    eight.deployment.scale(8, (), 0.0)
    play(one, 1000)
    play(eight, 1000)
    alone_s, slowest_s = (
        one.deployment.ledger.cold_start_s[0],
        max(eight.deployment.ledger.cold_start_s),
    )
    assert alone_s < slowest_s < 2 * alone_s


def test_without_gpus_a_replica_waits_and_gets_those_of_one_that_goes(
    scenario_of: Build, service_of: Serve, play: Play
) -> None:
    service = service_of(scenario_of(gpus=1))
    service.deployment.scale(2, (), 0.0)
    play(service, 100)
    states = [each.state for each in service.deployment.replicas.values()]
    assert states == [ReplicaState.READY, ReplicaState.UNSCHEDULABLE]
    service.deployment.delete("model-0-1", 100.0)
    play(service, 200)
    states = [each.state for each in service.deployment.replicas.values()]
    assert states == [ReplicaState.READY, ReplicaState.UNSCHEDULABLE]
    assert list(service.deployment.replicas) == ["model-0-2", "model-0-3"]
