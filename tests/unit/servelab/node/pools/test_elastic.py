"""Which nodes pods without one would fit."""

from decimal import Decimal
from typing import Any

import pytest

from servelab.node.pools import elastic

SHAPE = elastic.Shape(
    {"zone": "a", "size": "8"},
    [{"key": "gpu", "value": "present", "effect": "NoSchedule"}],
    {"nvidia.com/gpu": Decimal(8), "cpu": Decimal(96), "pods": Decimal(110)},
)
TOLERANT = {"tolerations": [{"key": "gpu", "operator": "Exists"}]}


def pod(name: str = "p", gpus: int = 1, **spec: Any) -> dict[str, Any]:
    limits = {"limits": {"nvidia.com/gpu": str(gpus)}}
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        "metadata": {"uid": name},
        "spec": {**TOLERANT, "containers": [{"resources": limits}], **spec},
        "status": {"conditions": [unschedulable]},
    }


def required(*expressions: dict[str, Any]) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    wanted = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return {"affinity": {"nodeAffinity": wanted}}


def rule(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({}, True),
        ({"nodeSelector": {"zone": "b"}}, False),
        (required(rule("zone", "In", "a", "b")), True),
        (required(rule("zone", "NotIn", "a")), False),
        (required(rule("zone", "Exists"), rule("other", "DoesNotExist")), True),
        (required(rule("size", "Gt", "7"), rule("size", "Lt", "9")), True),
        (required(rule("zone", "Gt", "7")), False),
        ({"tolerations": []}, False),
        ({"tolerations": [{"operator": "Exists"}]}, True),
        ({"tolerations": [{"key": "gpu", "value": "present", "effect": "NoSchedule"}]}, True),
        ({"tolerations": [{"key": "gpu", "value": "other"}]}, False),
    ],
)
def test_a_pod_is_taken_as_the_scheduler_would(spec: dict[str, Any], fits: bool) -> None:
    assert elastic.Place.of("n", SHAPE).fits(pod(**spec)) is fits


def test_pods_wait_for_nodes_that_come_before_they_ask_for_more() -> None:
    coming = elastic.Place.of("n-0", SHAPE)
    found = elastic.answer([pod("a", 8), pod("b", 6), pod("c", 2)], [coming], SHAPE, room=3)
    assert (found.new, found.triggering, found.expected) == (1, ("b", "c"), frozenset({"n-0"}))


def test_only_pods_the_scheduler_gave_up_on_count() -> None:
    bound, fresh, going = pod("bound", nodeName="n"), pod("fresh"), pod("going")
    fresh["status"] = {}
    going["metadata"]["deletionTimestamp"] = "now"
    every = [bound, fresh, going, pod("none", 0), pod("left")]
    assert [p["metadata"]["uid"] for p in elastic.unplaced(every, ["nvidia.com/gpu"])] == ["left"]
