"""Every example applies as it stands and comes to the state it promises."""

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from servelab.cluster import local
from servelab.demo import examples

pytestmark = pytest.mark.cluster

Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]
WAIT = "--timeout=90s"
POOL = "gpu-pool.yaml"
# Models at zero that a request wakes; the name that clients send.
SLEEPERS = {
    "llama-8b.yaml": "llama-8b",
    "llama-8b-small-batch.yaml": "llama-8b",
    "llama-70b-tp4.yaml": "llama-70b",
}
OTHERS = {"manual.yaml", "plain-vllm.yaml"}


@pytest.fixture
def apply(
    local_cluster: local.LocalCluster, pool: str, kubectl: Kubectl, namespace: str
) -> Iterator[Callable[[str], str]]:
    """Applies an example and returns its namespace; the example is gone when the test ends."""
    applied: list[str] = []

    def act(name: str) -> str:
        applied.append(str(examples.directory() / name))
        kubectl("-n", namespace, "apply", "-f", applied[-1])
        return namespace

    yield act
    for path in applied:
        kubectl("-n", namespace, "delete", "-f", path)


def test_every_example_is_tested() -> None:
    there = {path.name for path in examples.directory().glob("*.yaml")}
    assert there == {POOL, *SLEEPERS, *OTHERS}


def test_the_pool_becomes_a_node_with_eight_gpus(pool: str, kubectl: Kubectl) -> None:
    path = "jsonpath={.items[0].status.allocatable.nvidia\\.com/gpu}"
    label = f"emulator.modelserve.dev/pool={pool}"
    assert kubectl("get", "nodes", "-l", label, "-o", path).stdout == "8"


@pytest.mark.parametrize("name", SLEEPERS)
def test_a_model_at_zero_is_ready_and_wakes_with_the_first_request(
    name: str,
    apply: Callable[[str], str],
    kubectl: Kubectl,
    model_of: type[Any],
    local_cluster: local.LocalCluster,
) -> None:
    namespace = apply(name)
    model = model_of(SLEEPERS[name], namespace, kubectl, local_cluster.gateway_url)
    model.wait("condition=Ready")
    assert model.pods() == []
    assert model.chat()[0] == 200


def test_the_manual_one_has_the_replicas_it_asks_for(
    apply: Callable[[str], str], kubectl: Kubectl
) -> None:
    namespace = apply("manual.yaml")
    ready = "{.status.readyReplicas}"
    kubectl("-n", namespace, "wait", "modelserve/llama-manual", f"--for=jsonpath={ready}=1", WAIT)
    told = kubectl("-n", namespace, "get", "modelserve/llama-manual", f"-o=jsonpath={ready}")
    assert told.stdout == "1"


def test_a_deployment_that_knows_nothing_of_us_becomes_an_engine_too(
    apply: Callable[[str], str], kubectl: Kubectl
) -> None:
    namespace = apply("plain-vllm.yaml")
    kubectl("-n", namespace, "wait", "deployment/plain-vllm", "--for=condition=Available", WAIT)
    assert "vLLM" in kubectl("-n", namespace, "logs", "deployment/plain-vllm").stdout
