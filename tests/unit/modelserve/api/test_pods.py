"""What is read from pods: GPUs, addresses, costs."""

from typing import Any

import pytest

from modelserve.api import names, pods


def container(**resources: dict[str, str]) -> dict[str, Any]:
    return {"name": "c", "resources": resources}


def pod(*containers: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": list(containers)}, "status": status}


def test_a_request_and_its_limit_count_once() -> None:
    both = container(requests={"nvidia.com/gpu": "2"}, limits={"nvidia.com/gpu": "2"})
    assert pods.gpus(pod(both)) == {"nvidia.com/gpu": 2}


def test_the_largest_init_container_counts_where_it_takes_more() -> None:
    found = pod(container(limits={"amd.com/gpu": "1"}))
    found["spec"]["initContainers"] = [container(limits={"amd.com/gpu": "4"})]
    assert pods.gpus(found) == {"amd.com/gpu": 4}


def test_a_count_that_no_node_has_raises_nothing() -> None:
    assert pods.gpus(pod(container(limits={"nvidia.com/gpu": "1k"}))) == {}


def test_a_dial_annotation_counts_on_virtual_nodes_only() -> None:
    found = pod(container(), podIP="10.0.0.7")
    found["metadata"]["annotations"] = {names.DIAL: "169.254.169.254:80"}
    assert pods.dial_address(found, virtual=True) == "169.254.169.254:80"
    assert pods.dial_address(found, virtual=False) != "169.254.169.254:80"


def test_an_emulated_pod_whose_node_is_gone_has_no_address() -> None:
    found = pod(container(), podIP="10.200.0.7")
    found["metadata"]["annotations"] = {names.DIAL: "127.0.0.1:5000"}
    assert pods.dial_address(found, virtual=False) == ""


def test_a_port_for_metrics_replaces_the_apis() -> None:
    assert pods.dial_address(pod(container(), podIP="fd00::7"), virtual=False, port=8002) == (
        "[fd00::7]:8002"
    )


@pytest.mark.parametrize(("text", "cost"), [("-3", -3), ("", None), ("much", None)])
def test_a_deletion_cost_that_is_no_number_is_none(text: str, cost: int | None) -> None:
    found = pod(container())
    found["metadata"]["annotations"] = {names.POD_DELETION_COST: text}
    assert pods.deletion_cost(found) == cost
