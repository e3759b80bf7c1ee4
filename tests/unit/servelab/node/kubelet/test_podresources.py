"""Resources of a pod as a whole, in its status."""

from typing import Any

from servelab.node.kubelet import podresources

CPU = {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}
MEMORY = {"requests": {"memory": "64Mi"}, "limits": {"memory": "64Mi"}}
GPU = {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}


def pod(*containers: Any, phase: str = "Pending", **spec: Any) -> Any:
    found = [{"name": f"c{n}", "resources": each} for n, each in enumerate(containers)]
    return {"spec": {"containers": found, **spec}, "status": {"phase": phase}}


def test_a_pod_that_asks_for_nothing_has_empty_resources() -> None:
    assert podresources.told(pod({}), {}) == {"resources": {}, "allocatedResources": None}


def test_what_containers_ask_for_is_added_up_in_the_form_of_the_spec() -> None:
    found = podresources.told(pod(CPU | {"requests": {"cpu": "950m"}}, CPU, MEMORY, MEMORY), {})
    assert found["allocatedResources"] == {"cpu": "1050m", "memory": "128Mi"}
    assert found["resources"]["limits"] == {"cpu": "400m", "memory": "128Mi"}


def test_a_pod_that_runs_tells_what_its_cgroup_has() -> None:
    before = podresources.told(pod(CPU, GPU), {})
    assert before["resources"]["limits"] == {"cpu": "200m", "nvidia.com/gpu": "1"}
    found = podresources.told(pod(CPU, GPU, phase="Running"), before)
    assert found["resources"]["requests"] == {"cpu": "100m", "nvidia.com/gpu": None}
    # No limit holds where one container has none.
    assert found["resources"]["limits"] == {"cpu": None, "nvidia.com/gpu": None}
    assert found["allocatedResources"] == {"cpu": "100m", "nvidia.com/gpu": "1"}


def test_what_is_no_more_stays_null_whatever_write_is_left_out() -> None:
    before = podresources.told(pod(CPU, GPU), {})
    for _ in range(2):
        before = podresources.told(pod(CPU, CPU, phase="Running"), before)
    assert before["resources"]["limits"] == {"cpu": "400m", "nvidia.com/gpu": None}


def test_the_pods_own_amounts_come_first() -> None:
    own = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    found = podresources.told(pod(CPU, {}, phase="Running", resources=own), {})
    assert found["resources"] == own
