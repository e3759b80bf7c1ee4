"""Selectors, tolerations and requests say which nodes a model's pods may be on, as on a cluster."""

from collections.abc import Callable
from typing import Any

import pytest

from modelserve import errors
from servelab.sim import observing, reading, running, scenario
from servelab.sim.service import Service

Build = Callable[..., scenario.Scenario]
Serve = Callable[..., Service]
Play = Callable[[Service, float], None]

GPU = "NVIDIA-H100-80GB-HBM3"
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TEAM_TAINT = {"key": "team", "value": "b", "effect": "NoSchedule"}
TEAM = {"tolerations": [{"key": "team", "value": "b"}]}
A: dict[str, Any] = {"name": "a", "gpu": GPU, "gpusPerNode": 2, "nodes": 1, "labels": {"zone": "a"}}
B: dict[str, Any] = {"name": "b", "gpu": GPU, "gpusPerNode": 4, "nodes": 2}
TAINTED = {**B, "taints": [GPU_TAINT, TEAM_TAINT]}
ELASTIC = {**B, "nodes": {"min": 1, "max": 3, "bootSeconds": 90}}


@pytest.fixture
def served(scenario_of: Build, service_of: Serve) -> Callable[..., Service]:
    """A model whose pods carry this template, on these pools."""

    def build(template: dict[str, Any], *pools: dict[str, Any]) -> Service:
        return service_of(scenario_of(spec={"template": template}, pools=list(pools)))

    return build


def where(service: Service) -> list[str]:
    """The nodes of its pods, empty for those that have none."""
    return sorted(
        each.node.name if each.node else "" for each in service.deployment.replicas.values()
    )


@pytest.mark.parametrize(
    ("template", "pools", "found"),
    [
        pytest.param({}, (A, B), ["b-0", "b-1", "b-0"], id="anywhere"),
        pytest.param({"nodeSelector": {"zone": "a"}}, (A, B), ["a-0", "a-0", ""], id="label"),
        pytest.param({}, (A, TAINTED), ["a-0", "a-0", ""], id="taint"),
        pytest.param(TEAM, (A, TAINTED), ["b-0", "b-1", "b-0"], id="toleration"),
        pytest.param(
            {"nodeSelector": {"kubernetes.io/hostname": "b-1"}}, (A, B), ["b-1"] * 3, id="name"
        ),
        pytest.param(
            {"resources": {"requests": {"cpu": "40"}}},
            ({**A, "cpu": "8"}, B),
            ["b-0", "b-1", "b-0"],
            id="cpu",
        ),
    ],
)
def test_pods_go_only_where_they_may(
    served: Callable[..., Service], template: Any, pools: Any, found: list[str]
) -> None:
    service = served(template, *pools)
    service.deployment.scale(3, (), 0.0)
    assert where(service) == sorted(found)


@pytest.mark.parametrize(
    ("template", "room"),
    [({"nodeSelector": {"zone": "a"}}, 2), ({}, 2), (TEAM, 10)],
    ids=["label", "taint", "toleration"],
)
def test_only_room_where_its_pods_may_be_is_counted_on(
    served: Callable[..., Service], template: Any, room: int
) -> None:
    service = served(template, A, TAINTED)
    assert observing.Observer(service).parameters().gpus.replicas == room


@pytest.mark.parametrize(
    ("template", "grows"), [({"nodeSelector": {"zone": "a"}}, False), ({}, True)]
)
def test_a_pool_that_does_not_suit_neither_grows_for_a_model_nor_is_waited_for(
    served: Callable[..., Service], play: Play, template: Any, grows: bool
) -> None:
    service = served(template, A, ELASTIC)
    assert observing.Observer(service).parameters().gpus.can_grow is grows
    service.deployment.scale(9, (), 0.0)
    play(service, 100)
    assert len(list(service.place.nodes)) == (3 if grows else 2)


def test_two_models_share_what_both_may_use_and_no_more(scenario_of: Build) -> None:
    """One of them may use one pool of two: it never has more replicas than GPUs there."""
    traffic = [{"steady": {"perSecond": 12, "seconds": 900}, "output": 400}]
    bound = {"template": {"nodeSelector": {"zone": "a"}}}
    one, other = (scenario_of(traffic, spec=each, pools=[A, B]) for each in (bound, {}))
    other_model = other.models[0].model_copy(update={"name": "other"})
    both = one.model_copy(update={"models": [one.models[0], other_model]})
    most = [max(n for _, n in m.ledger.ready) for m in running.run(both, "committed").models]
    assert most[0] <= 2 < most[1]


GOOD = """\
pools:
  - {name: a, gpu: NVIDIA-H100-80GB-HBM3, nodes: 1, gpusPerNode: 2, labels: {zone: a}}
  - name: b
    gpu: NVIDIA-H100-80GB-HBM3
    nodes: 1
models:
  - name: small
    spec:
      model: {name: meta-llama/Llama-3.1-8B-Instruct}
      gpu: {product: NVIDIA-H100-80GB-HBM3}
      template:
        nodeSelector:
          zone: a
        resources:
          requests: {memory: 10Gi}
      scaling: {minReplicas: 2}
"""


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        pytest.param(
            "zone: a\n",
            "zone: c\n",
            "line 13: models.0.spec.template.nodeSelector.zone: no pool takes small: pool a has no "
            "node with label zone: c; pool b has no node with label zone: c;",
            id="label",
        ),
        pytest.param(
            "labels: {zone: a}",
            "labels: {zone: a}, taints: [{key: team, value: b, effect: NoExecute}]",
            "line 11: models.0.spec.template.tolerations: no pool takes small: pool a has taint "
            "team=b:NoExecute, not tolerated; pool b has no node with label zone: a;",
            id="taint",
        ),
        pytest.param(
            "10Gi",
            "4Ti",
            "line 15: models.0.spec.template.resources.requests.memory: no pool takes small: pool "
            "a has 1048476Mi of memory for pods on a node, and 4Ti are asked for;",
            id="memory",
        ),
        pytest.param(
            "{minReplicas: 2}",
            "{minReplicas: 3}",
            r"line 16: models.0.spec.scaling.minReplicas: with this minReplicas 3 × .* have 2 at",
            id="least",
        ),
    ],
)
def test_a_model_that_can_use_no_pool_is_told_where_and_why(
    before: str, after: str, told: str
) -> None:
    assert reading.parse(GOOD, "mine.yaml").models
    assert before in GOOD
    with pytest.raises(errors.InputError, match=f"^mine.yaml, {told}"):
        reading.parse(GOOD.replace(before, after), "mine.yaml")


def test_a_scenario_made_in_python_is_refused_too(scenario_of: Build) -> None:
    given = scenario_of(spec={"template": {"nodeSelector": {"zone": "c"}}})
    with pytest.raises(errors.InputError, match="no pool takes model-0"):
        running.run(given, "committed")
