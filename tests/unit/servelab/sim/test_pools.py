"""Nodes that come when pods wait and go when idle, with what they keep."""

from collections.abc import Callable
from typing import Any

import pytest

from modelserve.decide.observation import ReplicaState as State
from servelab.sim import outcome, running, scenario
from servelab.sim.service import Service

Build = Callable[..., scenario.Scenario]
Serve = Callable[..., Service]
Play = Callable[[Service, float], None]

ELASTIC: dict[str, Any] = {
    "gpu": "NVIDIA-H100-80GB-HBM3",
    "gpusPerNode": 2,
    "nodes": {"min": 0, "max": 3, "bootSeconds": 90, "deviceSeconds": 15, "idleSeconds": 200},
}
BIG_IMAGE = {"coldStart": {"imageSize": "9GB", "warmUpSeconds": 5}}


def names(service: Service) -> list[str]:
    return sorted(node.name for node in service.place.nodes)


@pytest.fixture
def growing(scenario_of: Build, service_of: Serve) -> Service:
    """One model on a pool without nodes; a start on a node takes some 20 s."""
    return service_of(scenario_of(pools=[ELASTIC]))


def test_pods_that_find_no_node_make_as_many_come_as_they_need(
    growing: Service, play: Play
) -> None:
    growing.deployment.scale(3, (), 0.0)
    play(growing, 74)
    assert names(growing) == []
    play(growing, 76)
    assert names(growing) == ["pool-0", "pool-1"]
    assert {each.state for each in growing.deployment.replicas.values()} == {State.UNSCHEDULABLE}
    play(growing, 130)
    assert {each.state for each in growing.deployment.replicas.values()} == {State.READY}


def test_what_was_waited_for_a_node_is_measured_as_provisioning(
    growing: Service, play: Play
) -> None:
    growing.deployment.scale(1, (), 0.0)
    play(growing, 130)
    took = growing.deployment.ledger.measured[0]
    assert took.provisioning_s == pytest.approx(90, abs=0.1)
    assert took.total_s == pytest.approx(growing.deployment.ledger.cold_start_s[0], abs=0.1)


def test_no_more_nodes_come_than_the_pool_may_have(growing: Service, play: Play) -> None:
    growing.deployment.scale(9, (), 0.0)
    play(growing, 200)
    assert names(growing) == ["pool-0", "pool-1", "pool-2"]
    found = [each.state for each in growing.deployment.replicas.values()]
    assert (found.count(State.READY), found.count(State.UNSCHEDULABLE)) == (6, 3)


def test_while_the_last_node_boots_one_comes(
    scenario_of: Build, service_of: Serve, play: Play
) -> None:
    pool = {**ELASTIC, "nodes": {**ELASTIC["nodes"], "min": 1, "max": 2}}
    service = service_of(scenario_of(pools=[pool]))
    service.deployment.scale(4, (), 0.0)
    told_s = []
    for until_s in (10, 80, 91):
        play(service, until_s)
        told_s.append(service.place.pools.provisioning_s(service.deployment.wish))
    # It boots; it is up without its GPUs; both have theirs.
    assert told_s == [90, 90, 0]


def test_idle_nodes_go_and_take_what_they_had_with_them(growing: Service, play: Play) -> None:
    growing.deployment.scale(1, (), 0.0)
    play(growing, 150)
    growing.deployment.scale(0, (), 150.0)
    play(growing, 349)
    assert names(growing) == ["pool-0"]
    play(growing, 351)
    assert names(growing) == []
    assert growing.place.pools.gpu_s == pytest.approx(2 * (350 - 75), abs=1)


def test_the_least_nodes_always_stand(scenario_of: Build, service_of: Serve, play: Play) -> None:
    pool = {**ELASTIC, "nodes": {**ELASTIC["nodes"], "min": 1}}
    service = service_of(scenario_of(pools=[pool]))
    service.deployment.scale(4, (), 0.0)
    play(service, 150)
    service.deployment.scale(0, (), 150.0)
    play(service, 1000)
    assert names(service) == ["pool-0"]


def test_an_elastic_pool_costs_fewer_node_hours_and_longer_waits(scenario_of: Build) -> None:
    law = {"perSecond": 2, "onSeconds": 200, "offSeconds": 1500, "seconds": 3600}
    fixed = {**ELASTIC, "nodes": 3}
    found = []
    for pool in (ELASTIC, fixed):
        built = scenario_of([{"onOff": law, "output": 200}], pools=[pool])
        found.append(outcome.of(running.run(built, "committed"), built))
    elastic, standing = found
    assert elastic.completed == standing.completed == elastic.requests
    assert elastic.node_gpu_hours < 0.7 * standing.node_gpu_hours
    assert elastic.ttft_p95_s > standing.ttft_p95_s + 30


def test_a_second_start_finds_the_image_and_the_weights(
    scenario_of: Build, service_of: Serve, play: Play
) -> None:
    service = service_of(scenario_of(spec=BIG_IMAGE))
    for at_s, count in ((0.0, 1), (300.0, 0), (310.0, 1)):
        play(service, at_s)
        service.deployment.scale(count, (), at_s)
    play(service, 600)
    first, second = service.deployment.ledger.measured
    assert second.image_pull_s < 1 < first.image_pull_s
    assert second.weight_load_s < first.weight_load_s


def test_images_on_the_same_base_share_its_layers(
    scenario_of: Build, service_of: Serve, play: Play
) -> None:
    took = []
    for before in ("", "vllm/vllm-openai:v0.32.0"):
        service = service_of(scenario_of(spec={"coldStart": {"warmUpSeconds": 5}}))
        node = next(iter(service.place.nodes))
        if before:
            node.images.add(before, 8_900_000_000)
        service.deployment.scale(1, (), 0.0)
        play(service, 600)
        took.append(service.deployment.ledger.measured[0].image_pull_s)
    assert took[1] < 0.8 * took[0]


def test_images_go_when_the_disk_is_full(scenario_of: Build, service_of: Serve, play: Play) -> None:
    pool = {"gpu": ELASTIC["gpu"], "gpusPerNode": 2, "nodes": 1, "disk": "60Gi"}
    service = service_of(scenario_of(spec={"coldStart": {"warmUpSeconds": 5}}, pools=[pool]))
    node = next(iter(service.place.nodes))
    node.images.add("example.com/old:1", 16_000_000_000)
    service.deployment.scale(1, (), 0.0)
    play(service, 700)
    assert not node.images.present("example.com/old:1")
    assert service.deployment.recipe.image in node.images.names
