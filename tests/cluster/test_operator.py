"""The operator on a real API server, with gateway and emulated nodes, as kubectl shows it."""

import json
import signal
import subprocess
import threading
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
PATIENCE = f"--timeout={PATIENCE_REAL_S:g}s"


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

    def wait(self, condition: str, kind: str = "modelserve") -> None:
        """Let the API server tell when the object is there and a ``kubectl wait`` condition holds.

        A path's condition is one of its value.
        """
        said = f"jsonpath={condition}" if condition.startswith("{") else f"condition={condition}"
        for wanted in ("create", said):
            self("wait", f"{kind}/{self.name}", f"--for={wanted}", PATIENCE)

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
    model.wait("Ready")
    assert model.ask()["usage"]["completion_tokens"] == 4
    status = model.get()["status"]
    assert status["lastScale"]["reason"] == "Activation"
    model.wait("{.status.coldStart.measured}")
    model.wait("{.spec.replicas}=0", "deployment")
    model("wait", "pods", "--all", "--for=delete", PATIENCE)
    reasons = model("get", "events", "-o", "jsonpath={.items[*].reason}").split()
    assert {"Activated", "ColdStartFinished", "ScaledToZero"} <= set(reasons)


def test_the_history_command_tells_the_changes(model: Model) -> None:
    model.apply(scaling={"minReplicas": 1})
    model.wait("{.status.history[0].reason}")
    described = model("describe", "modelserve", model.name)
    assert "Activated" in described or "AtMinimum" in described


def test_kubectl_scale_acts_in_mode_manual(model: Model) -> None:
    model.apply(scaling={"mode": "Manual"}, replicas=1)
    model.wait("{.spec.replicas}=1", "deployment")
    model("scale", "modelserve", model.name, "--replicas=2")
    model.wait("{.spec.replicas}=2", "deployment")
    model("scale", "modelserve", model.name, "--replicas=0")
    model.wait("{.spec.replicas}=0", "deployment")
    assert model.count() == 0


def test_scaling_the_deployment_is_a_conflict_and_is_taken_back(model: Model) -> None:
    """The other's count stands for one down window: here long enough for kubectl to see it."""
    model.apply(scaling={"scaleDown": {"stabilizationWindowSeconds": 300}})
    model.wait("{.spec.replicas}=0", "deployment")
    model("scale", "deployment", model.name, "--replicas=3")
    model.wait("Conflict")
    model.wait("{.spec.replicas}=0", "deployment")
    model.wait("Conflict=false")
    assert model.count() == 0


def test_a_model_that_does_not_fit_says_so_with_the_arithmetic(model: Model) -> None:
    model.apply(model={"name": "meta-llama/Llama-3.1-70B-Instruct"})
    model.wait("Ready=false")
    ready = model.condition("Ready")
    assert ready["reason"] == "WeightsDoNotFit"
    assert "needs 141.1 GB" in ready["message"]
    assert "tensorParallel 2" in ready["message"]
    assert model.condition("Stalled")["status"] == "True"


def test_deleting_the_model_removes_everything(model: Model) -> None:
    model.apply()
    model.wait("{.spec.replicas}=0", "deployment")
    assert "finalizers" not in model.get()["metadata"]
    model("delete", "modelserve", model.name, "--timeout=10s")
    for kind in ("deployment", "service"):
        model("wait", f"{kind}/{model.name}", "--for=delete", PATIENCE)
        assert model.get(kind) == {}


def test_an_operator_killed_during_a_cold_start_loses_nothing(model: Model) -> None:
    model.apply()
    model.wait("Ready")
    answers: list[dict[str, Any]] = []
    asking = threading.Thread(target=lambda: answers.append(model.ask()))
    asking.start()
    model.wait("{.spec.replicas}=1", "deployment")
    model.restart(workloads.OPERATOR, signal.SIGKILL)
    asking.join(PATIENCE_REAL_S)
    assert answers
    model.wait("{.status.readyReplicas}=1")
    assert model.get()["status"]["lastScale"]["reason"] == "Activation"
