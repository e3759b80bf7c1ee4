"""Resources of a pod as a whole, in its status."""

from typing import Any

from servelab.node.kubelet import podresources

CPU = {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}
MEMORY = {"requests": {"memory": "64Mi"}, "limits": {"memory": "64Mi"}}
GPU = {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}


STARTS = podresources.Sight(running=False, ran=False)
RUNS = podresources.Sight(running=True, ran=True)
ENDED = podresources.Sight(running=True, ran=False, cgroup=False)


def pod(*containers: Any, **spec: Any) -> Any:
    found = [{"name": f"c{n}", "resources": each} for n, each in enumerate(containers)]
    return {"spec": {"containers": found, **spec}}


def test_a_pod_that_asks_for_nothing_has_empty_resources() -> None:
    assert podresources.told(pod({}), {}, STARTS) == {"resources": {}, "allocatedResources": None}


def test_what_containers_ask_for_is_added_up_in_the_form_of_the_spec() -> None:
    found = podresources.told(
        pod(CPU | {"requests": {"cpu": "950m"}}, CPU, MEMORY, MEMORY), {}, STARTS
    )
    assert found["allocatedResources"] == {"cpu": "1050m", "memory": "128Mi"}
    assert found["resources"]["limits"] == {"cpu": "400m", "memory": "128Mi"}


def test_a_pod_that_runs_tells_what_its_cgroup_has() -> None:
    before = podresources.told(pod(CPU, GPU), {}, STARTS)
    assert before["resources"]["limits"] == {"cpu": "200m", "nvidia.com/gpu": "1"}
    found = podresources.told(pod(CPU, GPU), before, RUNS)
    assert found["resources"]["requests"] == {"cpu": "100m", "nvidia.com/gpu": None}
    # No limit holds where one container has none, but what was told of it stays.
    assert found["resources"]["limits"] == {"cpu": "200m", "nvidia.com/gpu": None}
    assert found["allocatedResources"] == {"cpu": "100m", "nvidia.com/gpu": "1"}


def test_a_limit_that_does_not_hold_is_told_no_more_once_the_pod_has_run() -> None:
    before = podresources.told(pod(CPU, GPU), {}, STARTS)
    over = podresources.Sight(running=True, ran=False)
    assert podresources.told(pod(CPU, GPU), before, over)["resources"]["limits"]["cpu"] is None


def test_without_a_cgroup_only_memory_is_added_up() -> None:
    before = podresources.told(pod(CPU, MEMORY), {}, STARTS)
    found = podresources.told(pod(CPU, MEMORY), before, ENDED)["resources"]
    assert found["requests"] == {"cpu": None, "memory": "64Mi"}
    assert set(found["limits"].values()) == {None}


def test_what_is_no_more_stays_null_whatever_write_is_left_out() -> None:
    before = podresources.told(pod(CPU, GPU), {}, STARTS)
    for _ in range(2):
        before = podresources.told(pod(CPU, CPU), before, RUNS)
    assert before["resources"]["limits"] == {"cpu": "400m", "nvidia.com/gpu": None}


def test_the_pods_own_amounts_come_first() -> None:
    own = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    found = podresources.told(pod(CPU, {}, resources=own), {}, RUNS)
    assert found["resources"] == own
