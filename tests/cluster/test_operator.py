"""The operator on a real API server, with gateway and emulated nodes, as kubectl shows it."""

import json
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from servelab.cluster import local, workloads

pytestmark = pytest.mark.cluster

Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]
POOL = {
    "apiVersion": "emulator.modelserve.dev/v1alpha1",
    "kind": "GPUPool",
    "metadata": {"name": "operator-tests"},
    "spec": {"gpu": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8, "nodes": 1},
}
PATIENCE_REAL_S = 60.0


class Model:
    """One ModelServe in a namespace of its own."""

    def __init__(self, kubectl: Kubectl, namespace: str, cluster: local.LocalCluster) -> None:
        self.name = f"llama-{namespace}"
        self._kubectl = kubectl
        self._namespace = namespace
        self._cluster = cluster

    def __call__(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        """kubectl in that namespace."""
        done = self._kubectl("-n", self._namespace, *arguments, stdin=stdin, check=check)
        return done.stdout if check else done.stdout + done.stderr

    def apply(self, **spec: Any) -> None:
        """``kubectl apply`` the ModelServe with what differs from the smallest one."""
        smallest = {
            "model": {"name": "meta-llama/Llama-3.1-8B-Instruct"},
            "gpu": {"product": "NVIDIA-H100-80GB-HBM3"},
        }
        document = {
            "apiVersion": "modelserve.dev/v1alpha1",
            "kind": "ModelServe",
            "metadata": {"name": self.name},
            "spec": {**smallest, **spec},
        }
        self("apply", "-f", "-", stdin=yaml.safe_dump(document))

    def get(self, kind: str = "modelserve") -> dict[str, Any]:
        """The object; empty if it is not there."""
        text = self("get", kind, self.name, "-o", "json", "--ignore-not-found")
        found: dict[str, Any] = json.loads(text) if text else {}
        return found

    def condition(self, kind: str) -> dict[str, Any]:
        """One condition; empty if it is not there."""
        conditions = self.get().get("status", {}).get("conditions", ())
        return next((c for c in conditions if c["type"] == kind), {})

    def count(self) -> int | None:
        """The Deployment's count."""
        replicas: int | None = self.get("deployment").get("spec", {}).get("replicas")
        return replicas

    def ask(self) -> dict[str, Any]:
        """One chat request through the gateway, whatever it takes."""
        message = {"role": "user", "content": "hello"}
        body = {"model": self.name, "messages": [message], "max_tokens": 4}
        request = urllib.request.Request(
            f"{self._cluster.gateway_url}/v1/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_REAL_S) as response:
            answer: dict[str, Any] = json.load(response)
        return answer

    def restart(self, process: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End a process of ours and start it again."""
        self._cluster.restart(process, how)


@pytest.fixture
def model(kubectl: Kubectl, namespace: str, local_cluster: local.LocalCluster) -> Iterator[Model]:
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump(POOL))
    made = Model(kubectl, namespace, local_cluster)
    yield made
    made("delete", "modelserve", made.name, "--ignore-not-found")


def until(condition: Callable[[], Any], what: str) -> None:
    """Wait for the cluster to get there."""
    end_s = time.monotonic() + PATIENCE_REAL_S
    while not condition():
        assert time.monotonic() < end_s, f"waited in vain for {what}"
        time.sleep(0.1)


def test_a_model_is_accepted_at_zero_with_its_children(model: Model) -> None:
    model.apply()
    model("wait", f"modelserve/{model.name}", "--for=condition=Ready", "--timeout=30s")
    assert model.count() == 0
    service = model.get("service")["spec"]
    assert service["clusterIP"] == "None"
    columns = model("get", "modelserves", "--no-headers").split()
    assert columns[:5] == [model.name, "meta-llama/Llama-3.1-8B-Instruct", "0", "8", "0"]


def test_a_request_wakes_the_model_and_silence_takes_it_back_to_zero(model: Model) -> None:
    model.apply(scaling={"cooldownSeconds": 200, "scaleDown": {"stabilizationWindowSeconds": 0}})
    until(lambda: model.condition("Ready").get("status") == "True", "the model")
    assert model.ask()["usage"]["completion_tokens"] == 4
    status = model.get()["status"]
    assert status["lastScale"]["reason"] == "Activation"
    until(lambda: model.get()["status"].get("coldStart", {}).get("measured"), "the measured start")
    until(lambda: model.count() == 0, "zero")
    until(lambda: not json.loads(model("get", "pods", "-o", "json"))["items"], "no pods")
    reasons = model("get", "events", "-o", "jsonpath={.items[*].reason}").split()
    assert {"Activated", "ColdStartFinished", "ScaledToZero"} <= set(reasons)


def test_the_history_command_tells_the_changes(model: Model) -> None:
    model.apply(scaling={"minReplicas": 1})
    until(lambda: model.get().get("status", {}).get("history"), "the first change")
    described = model("describe", "modelserve", model.name)
    assert "Activated" in described or "AtMinimum" in described


def test_kubectl_scale_acts_in_mode_manual(model: Model) -> None:
    model.apply(scaling={"mode": "Manual"}, replicas=1)
    until(lambda: model.count() == 1, "one replica")
    model("scale", "modelserve", model.name, "--replicas=2")
    until(lambda: model.count() == 2, "two replicas")
    model("scale", "modelserve", model.name, "--replicas=0")
    until(lambda: model.count() == 0, "none")


def test_scaling_the_deployment_is_a_conflict_and_is_taken_back(model: Model) -> None:
    model.apply()
    until(lambda: model.count() == 0, "the Deployment")
    model("scale", "deployment", model.name, "--replicas=3")
    until(lambda: model.condition("Conflict").get("status") == "True", "the conflict")
    until(lambda: model.count() == 0, "the count taken back")
    until(lambda: model.condition("Conflict").get("status") == "False", "the end of the conflict")


def test_a_model_that_does_not_fit_says_so_with_the_arithmetic(model: Model) -> None:
    model.apply(model={"name": "meta-llama/Llama-3.1-70B-Instruct"})
    until(lambda: model.condition("Ready").get("status") == "False", "the refusal")
    ready = model.condition("Ready")
    assert ready["reason"] == "WeightsDoNotFit"
    assert "needs 141.1 GB" in ready["message"]
    assert "tensorParallel 2" in ready["message"]
    assert model.condition("Stalled")["status"] == "True"


def test_deleting_the_model_removes_everything(model: Model) -> None:
    model.apply()
    until(lambda: model.count() == 0, "the Deployment")
    assert "finalizers" not in model.get()["metadata"]
    model("delete", "modelserve", model.name, "--timeout=10s")
    until(lambda: not model.get("deployment") and not model.get("service"), "the children's end")


def test_an_operator_killed_during_a_cold_start_loses_nothing(model: Model) -> None:
    model.apply()
    until(lambda: model.condition("Ready").get("status") == "True", "the model")
    answers: list[dict[str, Any]] = []
    asking = threading.Thread(target=lambda: answers.append(model.ask()))
    asking.start()
    until(lambda: model.count() == 1, "the wake")
    model.restart(workloads.OPERATOR, signal.SIGKILL)
    asking.join(PATIENCE_REAL_S)
    assert answers
    until(lambda: model.get()["status"].get("readyReplicas") == 1, "the report")
    assert model.get()["status"]["lastScale"]["reason"] == "Activation"
