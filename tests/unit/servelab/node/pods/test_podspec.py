"""A pod as the kubelet reads it."""

from typing import Any

import pytest

from servelab.node.pods import podspec


def test_named_ports_are_looked_up(make_pod: Any) -> None:
    probe = {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 2}
    ports = [{"name": "http", "containerPort": 8000}]
    container = podspec.parse(make_pod(ports=ports, startupProbe=probe)).containers[0]
    found = container.probe(podspec.ProbeKind.STARTUP)
    assert found is not None
    assert (found.where.url("10.0.0.9"), found.period_s) == ("http://10.0.0.9:8000/health", 2.0)


@pytest.mark.parametrize(
    ("image", "policy"),
    [("a", "Always"), ("a:latest", "Always"), ("a:1", "IfNotPresent"), ("r:5000/a", "Always")],
)
def test_the_pull_policy_follows_the_tag(make_pod: Any, image: str, policy: str) -> None:
    pod = make_pod(image=image, imagePullPolicy="")
    assert podspec.parse(pod).containers[0].pull_policy == policy


def test_init_containers_come_first(make_pod: Any) -> None:
    pod = make_pod()
    sidecar = {"name": "proxy", "image": "a:1", "restartPolicy": "Always"}
    pod["spec"]["initContainers"] = [sidecar]
    first, second = podspec.parse(pod).containers
    assert (first.name, first.sidecar, second.name) == ("proxy", True, "engine")
    assert first.field_path == "spec.initContainers{proxy}"


def test_an_added_container_comes_last_and_is_none_of_the_mains(make_pod: Any) -> None:
    raw = make_pod()
    raw["spec"]["ephemeralContainers"] = [{"name": "debug", "image": "busybox:1"}]
    added = podspec.parse(raw).containers[-1]
    assert (added.name, added.ephemeral, added.main) == ("debug", True, False)
    assert added.field_path == "spec.ephemeralContainers{debug}"
