"""The autoscaler's starred invariants on a real API server, with operator, gateway and engines.

What each one says, and the tests that hold it in virtual time: docs/explanation/invariants.md.
"""

import concurrent.futures
import contextlib
import json
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from modelserve.api import names
from servelab.cluster import local, workloads

pytestmark = pytest.mark.cluster

# Classes and functions in conftest.py, which no test can import by name.
Model = Any
Until = Callable[..., Any]

# Cold starts of some tenths of a real second, and of some 15 real seconds.
QUICK = {"imageSize": "1MB", "warmUpSeconds": 1}
SLOW = {"imageSize": "1MB", "warmUpSeconds": 900}
AT_ONCE = {"scaleDown": {"stabilizationWindowSeconds": 0}}


class Stream:
    """A streamed chat whose first bytes have come."""

    def __init__(self, model: Model, tokens: int) -> None:
        self._connection = model.connection()
        asked = json.dumps(model.body(max_tokens=tokens, stream=True))
        self._answer = model.begin(self._connection, asked)
        self.replica = self._answer.headers["X-ModelServe-Replica"]

    def rest(self) -> str:
        """All that still comes."""
        with contextlib.closing(self._connection):
            return str(self._answer.read().decode())

    def hang_up(self) -> None:
        """As a client that has seen enough."""
        self._answer.close()
        self._connection.close()


@pytest.fixture
def slow_engines(pool: str, kubectl: Callable[..., object]) -> Iterator[None]:
    """Steps take twenty times as long: a stream lasts some seconds at few tokens a second."""
    note = "emulator.modelserve.dev/faults"
    kubectl("annotate", "gpupool", pool, note + '=[{"type": "SlowEngine", "factor": 20}]')
    yield
    kubectl("annotate", "gpupool", pool, f"{note}-")


@pytest.fixture
def count(model: Model, local_cluster: local.LocalCluster) -> Callable[[], int]:
    """The Deployment's count, from the API server itself."""
    path = f"/apis/apps/v1/namespaces/{model.namespace}/deployments/{model.name}"
    return lambda: int(local_cluster.control_plane.admin.get(path)["spec"]["replicas"])


def staying(model: Model) -> list[str]:
    """Pods that were not told to end."""
    found = (pod["metadata"] for pod in model.pods())
    return [each["name"] for each in found if "deletionTimestamp" not in each]


def held_ms(headers: dict[str, str]) -> int:
    return int(headers["X-ModelServe-Held-Ms"])


def test_a_request_at_any_moment_around_the_zero_decision_is_answered(
    model: Model, count: Callable[[], int], until: Until
) -> None:
    """Invariant 2: some come before the decision, some in its middle, some after it."""
    model.apply(coldStart=QUICK, scaling={"cooldownSeconds": 30, **AT_ONCE})
    assert model.chat()[0] == 200
    quiet_since_s = time.monotonic()
    until("zero", count, lambda replicas: replicas == 0)
    quiet_s, held = time.monotonic() - quiet_since_s, []
    for step in range(-4, 5):
        time.sleep(max(0.0, quiet_s + step * 0.05))
        status, headers, body = model.ask()
        assert status == 200, (step, body)
        held.append(held_ms(headers))
    # How many of them came after the decision is the machine's affair; this one does.
    until("zero", count, lambda replicas: replicas == 0)
    status, headers, body = model.ask()
    assert (status, held_ms(headers) > 50) == (200, True), (held, body)


def test_a_held_request_wakes_the_model_after_restarts(
    model: Model, local_cluster: local.LocalCluster, count: Callable[[], int], until: Until
) -> None:
    """Invariant 3: held while no operator runs; then from zero at a gateway that just started."""
    model.apply(coldStart=QUICK, scaling={"cooldownSeconds": 30, **AT_ONCE})
    local_cluster.kill(workloads.OPERATOR, signal.SIGTERM)
    with concurrent.futures.ThreadPoolExecutor() as threads:
        answer = threads.submit(model.ask)
        local_cluster.start_processes([workloads.OPERATOR])
        status, headers, body = answer.result(timeout=90)
    assert (status, held_ms(headers) > 50) == (200, True), body
    until("zero", count, lambda replicas: replicas == 0)
    local_cluster.restart(workloads.GATEWAY, signal.SIGKILL)
    assert model.chat()[0] == 200


def test_a_scale_down_spares_the_busy_one_and_cuts_no_stream(
    model: Model, slow_engines: None, until: Until
) -> None:
    """Invariant 5: first the idle ones go; then the busy one too, when its stream is over."""
    model.apply(replicas=3, scaling={"mode": "Manual"}, drainSeconds=1800, coldStart=QUICK)
    model.wait_for(".status.readyReplicas", 3)
    stream = Stream(model, 3000)
    model.run("scale", "modelserve", model.name, "--replicas=1")
    left = until("two to go", lambda: staying(model), lambda names: len(names) < 2)
    assert left == [stream.replica]
    model.run("scale", "modelserve", model.name, "--replicas=0")
    until("the last one to be told", lambda: staying(model), lambda names: names == [])
    assert stream.replica in [pod["metadata"]["name"] for pod in model.pods()]
    assert stream.rest().endswith("data: [DONE]\n\n")
    model.run("wait", "pods", "--all", "--for=delete", "--timeout=60s")
    assert model.pods() == []


def phases(model: Model) -> list[str]:
    return sorted(pod["status"]["phase"] for pod in model.pods())


def test_pods_without_gpus_are_no_supply_and_block_nothing(model: Model, until: Until) -> None:
    """Invariant 8: of five on eight GPUs, four each, two serve, one waits; then all may sleep."""
    gpu = {"product": "NVIDIA-H100-80GB-HBM3", "tensorParallel": 4}
    model.apply(gpu=gpu, coldStart=QUICK, scaling={"minReplicas": 5})
    model.wait("condition=ScalingLimited")
    model.wait_for(".status.readyReplicas", 2)
    limited = model.condition("ScalingLimited")
    assert (limited["reason"], "3 short" in limited["message"]) == ("InsufficientGPU", True), (
        limited
    )
    two_of_three = ["Pending", "Running", "Running"]
    until("two that run and one that waits", lambda: phases(model), lambda n: n == two_of_three)
    assert model.count() == 3
    assert model.chat()[0] == 200
    model.apply(gpu=gpu, coldStart=QUICK, scaling={"cooldownSeconds": 30, **AT_ONCE})
    model.wait_for(".spec.replicas", 0, "deployment")
    assert model.count() == 0


def test_a_foreign_count_is_told_and_taken_back(model: Model) -> None:
    """Invariant 10: it stands for one down window, here long enough for kubectl to see it."""
    model.apply(scaling={"scaleDown": {"stabilizationWindowSeconds": 300}})
    model.wait_for(".spec.replicas", 0, "deployment")
    model.run("scale", "deployment", model.name, "--replicas=3")
    model.wait("condition=Conflict")
    assert "kubectl" in model.condition("Conflict")["message"]
    model.wait_for(".spec.replicas", 0, "deployment")
    model.wait("condition=Conflict=false")
    assert model.count() == 0


def test_an_hpa_on_the_same_deployment_is_a_conflict_while_it_is_there(
    model: Model, until: Until
) -> None:
    """Invariant 10: its two replicas against our one; it writes whenever it finds fewer."""
    model.apply(
        coldStart=QUICK,
        scaling={"minReplicas": 1, "scaleDown": {"stabilizationWindowSeconds": 300}},
    )
    model.wait_for(".status.readyReplicas", 1)
    bounds = ("--min=2", "--max=3", "--cpu=50%")
    model.run("autoscale", "deployment", model.name, *bounds)
    model.wait("condition=Conflict")
    assert "kube-controller-manager" in model.condition("Conflict")["message"]
    model.run("delete", "hpa", model.name)
    model.wait_for(".spec.replicas", 1, "deployment")
    model.wait("condition=Conflict=false")
    assert (model.count(), len(staying(model))) == (1, 1)


@pytest.fixture
def second(
    local_cluster: local.LocalCluster, beside: Callable[..., Any], until: Until
) -> Iterator[None]:
    """A second operator that waits for the first one's Lease."""
    started = beside(local_cluster, workloads.OPERATOR, "--identity=second")
    until("a second operator", started.said, lambda text: "waiting for Lease" in text)
    yield
    started.end()


def test_of_two_operators_one_decides_and_the_other_takes_over(
    model: Model,
    local_cluster: local.LocalCluster,
    second: None,
    count: Callable[[], int],
    until: Until,
) -> None:
    """Invariant 10; and 11: a killed operator leaves the count as it is."""
    path = (
        f"/apis/coordination.k8s.io/v1/namespaces/modelserve-system/leases/{names.OPERATOR_LEASE}"
    )

    def leader() -> str:
        return str(local_cluster.control_plane.admin.get(path)["spec"]["holderIdentity"])

    model.apply(coldStart=QUICK, scaling={"cooldownSeconds": 3600})
    assert model.chat()[0] == 200
    generation = model.get("deployment")["metadata"]["generation"]
    assert leader() != "second"
    local_cluster.kill(workloads.OPERATOR)
    until("the second one to lead", leader, lambda name: name == "second")
    model.apply(coldStart=QUICK, scaling={"cooldownSeconds": 3600, "maxReplicas": 5})
    model.wait_for(".status.observedGeneration", 2)
    assert (count(), model.get("deployment")["metadata"]["generation"]) == (1, generation)
    events = json.loads(model.run("get", "events", "-o", "json").stdout)["items"]
    assert [each.get("count", 1) for each in events if each["reason"] == "Activated"] == [1]


def test_clients_that_hang_up_leave_no_demand_behind(
    model: Model, slow_engines: None, until: Until
) -> None:
    """Invariant 11: five streams of most of a minute, cut by their clients."""
    longer = {"maxModelLength": 32768}
    model.apply(engine=longer, coldStart=QUICK, scaling={"minReplicas": 1})
    model.wait_for(".status.readyReplicas", 1)
    streams = [Stream(model, 20_000) for _ in range(5)]
    model.wait_for(".status.demand.total", 5)
    for stream in streams:
        stream.hang_up()
    model.wait_for(".status.demand.total", 0)
    assert model.get()["status"]["demand"]["running"] == 0
    assert model.count() == 1


def test_a_killed_gateway_leaves_no_demand_behind_and_the_count_does_not_dip(
    model: Model, local_cluster: local.LocalCluster
) -> None:
    """Invariant 11: its clients are gone with it; what was ordered for them comes."""
    model.apply(coldStart=SLOW, scaling={"cooldownSeconds": 3600})
    with concurrent.futures.ThreadPoolExecutor() as threads:
        lost = [threads.submit(model.ask) for _ in range(3)]
        model.wait_for(".status.startingReplicas", 1)
        generation = model.get("deployment")["metadata"]["generation"]
        local_cluster.restart(workloads.GATEWAY, signal.SIGKILL)
        for each in lost:
            with pytest.raises(ConnectionError):
                each.result(timeout=60)
    model.wait_for(".status.demand.total", 0)
    model.wait_for(".status.readyReplicas", 1)
    assert model.get()["status"]["demand"]["total"] == 0
    deployment = model.get("deployment")
    assert (deployment["spec"]["replicas"], deployment["metadata"]["generation"]) == (1, generation)
