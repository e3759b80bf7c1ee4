"""What is taken from the chart, and in which order."""

from typing import Any

from servelab.cluster import installation


def rendered(time_scale: float = 1.0) -> list[dict[str, Any]]:
    return list(installation.render(installation.chart_directory(), time_scale))


def test_definitions_come_before_what_uses_them() -> None:
    kinds = [manifest["kind"] for manifest in rendered()]
    assert kinds[:2] == ["CustomResourceDefinition", "CustomResourceDefinition"]
    assert kinds.index("ServiceAccount") < kinds.index("ClusterRoleBinding")


def test_the_local_cluster_takes_no_workloads_from_the_chart() -> None:
    assert not {"Deployment", "Service", "Pod"} & {manifest["kind"] for manifest in rendered()}


def test_the_chart_makes_an_account_for_each_process() -> None:
    names = {m["metadata"]["name"] for m in rendered() if m["kind"] == "ServiceAccount"}
    assert names == {"modelserve-operator", "modelserve-gateway", "modelserve-emulator"}


def test_the_time_scale_is_published_as_it_was_given() -> None:
    maps = [m for m in rendered(2.5) if m["metadata"]["name"] == "modelserve-time"]
    assert [float(one["data"]["timeScale"]) for one in maps] == [2.5]
