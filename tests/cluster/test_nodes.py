"""Emulated GPU nodes on the real API server: a vLLM Deployment that knows nothing of us runs."""

import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.cluster

SERVELAB = (sys.executable, "-P", "-m", "servelab")
KUBECTL = Path(sys.executable).with_name("kubectl")
SCALE = "30"
MODEL = "meta-llama/Llama-3.1-8B-Instruct"
POOL = {
    "apiVersion": "emulator.modelserve.dev/v1alpha1",
    "kind": "GPUPool",
    "metadata": {"name": "dgx"},
    "spec": {"gpu": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8, "nodes": 2},
}


class Lab:
    """A control plane of this module's own, and the emulator beside it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.emulator: subprocess.Popen[str] | None = None
        arguments = ("--only-control-plane", "--detach", "--time-scale", SCALE)
        subprocess.run(
            [*SERVELAB, "up", "--data-dir", directory, *arguments],
            check=True,
            capture_output=True,
            timeout=180,
        )

    def start_emulator(self) -> None:
        """Start it, and wait until it says that it is ready."""
        run = self.directory / "run"
        self.emulator = subprocess.Popen(
            [
                *(*SERVELAB, "emulator", f"--time-scale={SCALE}", "--workers=1"),
                f"--kubeconfig={run / 'emulator.kubeconfig'}",
                f"--kubelet-client-ca={run / 'pki' / 'ca.crt'}",
                f"--kubelet-cert={run / 'pki' / 'kubelet.crt'}",
                f"--kubelet-key={run / 'pki' / 'kubelet.key'}",
                f"--data-dir={self.directory / 'emulator'}",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.emulator.stdout is not None
        assert json.loads(self.emulator.stdout.readline())["ready"]

    def stop_emulator(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send it a signal, and wait for its end."""
        assert self.emulator is not None
        self.emulator.send_signal(number)
        self.emulator.communicate(timeout=15)
        return self.emulator.returncode

    def kubectl(self, *arguments: str, body: object = None) -> str:
        """What kubectl prints; a failure is one of the test."""
        done = subprocess.run(
            [KUBECTL, *arguments],
            input=None if body is None else json.dumps(body),
            env={**os.environ, "KUBECONFIG": str(self.directory / "run" / "kubeconfig")},
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def get(self, *arguments: str) -> Any:
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def pod(self, app: str) -> Any:
        return self.get("pods", "-l", f"app={app}")["items"][0]

    def dial(self, app: str) -> str:
        """Where the engine really listens."""
        return str(self.pod(app)["metadata"]["annotations"]["emulator.modelserve.dev/dial"])


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    found = Lab(tmp_path_factory.mktemp("lab") / "cluster")
    try:
        found.start_emulator()
        found.kubectl("apply", "-f", "-", body=POOL)
        found.kubectl("wait", "--for=condition=Ready", "gpupool/dgx", "--timeout=30s")
        yield found
        assert found.stop_emulator() == 0
    finally:
        if found.emulator is not None and found.emulator.poll() is None:
            found.emulator.kill()
            found.emulator.wait()
        subprocess.run([*SERVELAB, "down", "--data-dir", found.directory], check=False)


# Nodes of one GPU each that read their weights from one backend.
SLOW = {
    **POOL,
    "metadata": {"name": "slow"},
    "spec": {
        "gpu": "NVIDIA-H100-80GB-HBM3",
        "gpusPerNode": 1,
        "nodes": 4,
        "storage": {"sharedBandwidth": "1GB/s"},
    },
}


def deployment(app: str) -> dict[str, Any]:
    """What people apply to real clusters: no toleration, no annotation, no word of ours."""
    probe = {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 1}
    container = {
        "name": "server",
        "image": "vllm/vllm-openai:v0.33.0",
        "args": ["--model", MODEL, "--max-model-len", "8192"],
        "ports": [{"containerPort": 8000, "name": "http"}],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        "startupProbe": probe | {"failureThreshold": 600},
        "readinessProbe": probe,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": app},
        "spec": {
            "selector": {"matchLabels": {"app": app}},
            "template": {
                "metadata": {"labels": {"app": app}},
                "spec": {"containers": [container]},
            },
        },
    }


def stream(dial: str, tokens: int) -> str:
    """A streamed completion, read to its end."""
    asked = {"model": MODEL, "prompt": "hello", "max_tokens": tokens, "stream": True}
    request = urllib.request.Request(
        f"http://{dial}/v1/completions",
        json.dumps(asked | {"ignore_eos": True}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        text: str = response.read().decode()
    return text


@pytest.fixture(scope="module")
def served(lab: Lab) -> str:
    """A Deployment that has rolled out."""
    lab.kubectl("apply", "-f", "-", body=deployment("plain"))
    lab.kubectl("rollout", "status", "deployment/plain", "--timeout=60s")
    return "plain"


def test_a_pool_gives_ready_nodes_with_gpus(lab: Lab) -> None:
    node = lab.get("node", "dgx-1")
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"} in node["spec"][
        "taints"
    ]
    assert lab.get("gpupool", "dgx")["status"]["readyNodes"] == 2


def test_a_foreign_vllm_deployment_is_served(lab: Lab, served: str) -> None:
    assert stream(lab.dial(served), 3).endswith("data: [DONE]\n\n")


def test_its_pod_looks_like_a_kubelets(lab: Lab, served: str) -> None:
    status = lab.pod(served)["status"]
    assert status["podIP"].startswith("10.200.")
    order = [entry["type"] for entry in status["conditions"]]
    assert order[:2] == ["PodReadyToStartContainers", "Initialized"]
    assert status["containerStatuses"][0]["imageID"].startswith("sha256:")


def test_its_events_are_a_kubelets(lab: Lab, served: str) -> None:
    name = lab.pod(served)["metadata"]["name"]
    events = lab.get("events", "--field-selector", f"involvedObject.name={name}")["items"]
    reasons = [e["reason"] for e in events if e["source"].get("component") == "kubelet"]
    assert reasons[:4] == ["Pulling", "Pulled", "Created", "Started"]


def test_kubectl_logs_shows_the_engines_start(lab: Lab, served: str) -> None:
    assert "Application startup complete" in lab.kubectl("logs", f"deployment/{served}")
    assert lab.kubectl("logs", f"deployment/{served}", "--tail=1").count("\n") == 1


def test_its_image_is_listed_on_the_node(lab: Lab, served: str) -> None:
    node = lab.get("node", lab.pod(served)["spec"]["nodeName"])
    names = [name for image in node["status"]["images"] for name in image["names"]]
    assert "docker.io/vllm/vllm-openai:v0.33.0" in names


def test_replicas_that_start_at_once_share_the_storage(lab: Lab) -> None:
    lab.kubectl("apply", "-f", "-", body=SLOW)
    lab.kubectl("wait", "--for=condition=Ready", "gpupool/slow", "--timeout=30s")
    body = deployment("four")
    body["spec"]["replicas"] = 4
    body["spec"]["template"]["spec"]["nodeSelector"] = {"emulator.modelserve.dev/pool": "slow"}
    lab.kubectl("apply", "-f", "-", body=body)
    lab.kubectl("rollout", "status", "deployment/four", "--timeout=60s")
    loads = [load_ms(pod) for pod in lab.get("pods", "-l", "app=four")["items"]]
    lab.kubectl("delete", "deployment/four", "gpupool/slow")
    took_s = (max(end for _, end in loads) - min(start for start, _ in loads)) / 1000 * int(SCALE)
    # 4 times 16.1 GB at 1 GB/s, which one alone would take up too.
    assert took_s == pytest.approx(4 * 16.1, rel=0.03)


def load_ms(pod: Any) -> tuple[int, int]:
    """Start and end of a pod's weight load, Unix milliseconds."""
    told = json.loads(pod["metadata"]["annotations"]["modelserve.dev/phases"])
    load = next(stamp for stamp in told["stamps"] if stamp["phase"] == "WeightLoad")
    return load["start"], load["end"]


def test_the_kubelet_api_refuses_who_has_no_certificate(lab: Lab) -> None:
    node = lab.get("node", "dgx-0")
    port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with pytest.raises((ssl.SSLError, ConnectionError, urllib.error.URLError)):
        urllib.request.urlopen(f"https://127.0.0.1:{port}/pods", timeout=5, context=trusting)


def test_a_start_goes_on_when_the_emulator_was_killed(lab: Lab, served: str) -> None:
    before = lab.pod(served)["metadata"]["uid"]
    lab.kubectl("apply", "-f", "-", body=deployment("late"))
    lab.kubectl("wait", "--for=condition=PodScheduled", "pod", "-l", "app=late")
    lab.stop_emulator(signal.SIGKILL)
    lab.start_emulator()
    lab.kubectl("rollout", "status", "deployment/late", "--timeout=60s")
    assert lab.pod("late")["status"]["containerStatuses"][0]["restartCount"] == 0
    assert lab.pod(served)["metadata"]["uid"] == before
    assert stream(lab.dial(served), 3).endswith("data: [DONE]\n\n")


def test_a_deleted_pod_finishes_its_streams(lab: Lab, served: str) -> None:
    answers: list[str] = []
    dial, name = lab.dial(served), lab.pod(served)["metadata"]["name"]
    client = threading.Thread(target=lambda: answers.append(stream(dial, 8000)))
    client.start()
    lab.kubectl("delete", "deployment", served, "--wait=false")
    lab.kubectl("wait", "--for=delete", f"pod/{name}", "--timeout=60s")
    client.join()
    assert answers[0].endswith("data: [DONE]\n\n")


def plain(name: str, **container: Any) -> dict[str, Any]:
    """A pod of one container without an engine, put on a node by hand."""
    body = {"name": "main", "image": "docker.io/library/busybox:1", **container}
    spec = {"nodeName": "dgx-0", "containers": [body], "terminationGracePeriodSeconds": 1}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_a_pod_that_the_node_has_no_room_for_fails_as_a_kubelet_fails_it(lab: Lab) -> None:
    asking = plain("huge", resources={"limits": {"nvidia.com/gpu": "9"}})
    lab.kubectl("apply", "-f", "-", body=asking)
    lab.kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "pod/huge", "--timeout=20s")
    status = lab.get("pod", "huge")["status"]
    assert status["reason"] == "OutOfnvidia.com/gpu"
    assert status["message"].startswith("Pod was rejected: Node didn't have enough resource")
    lab.kubectl("delete", "pod", "huge", "--timeout=20s")


def test_a_pod_waits_for_its_configuration(lab: Lab) -> None:
    waiting = plain("waits", envFrom=[{"configMapRef": {"name": "late"}}])
    lab.kubectl("apply", "-f", "-", body=waiting)
    reason = "{.status.containerStatuses[0].state.waiting.reason}"
    wanted = f"--for=jsonpath={reason}=CreateContainerConfigError"
    lab.kubectl("wait", wanted, "pod/waits", "--timeout=30s")
    lab.kubectl("create", "configmap", "late", "--from-literal=a=b")
    lab.kubectl("wait", "--for=condition=Ready", "pod/waits", "--timeout=40s")
    assert lab.get("pod", "waits")["status"]["containerStatuses"][0]["restartCount"] == 0
    lab.kubectl("delete", "pod", "waits", "--timeout=20s")


def test_a_wrong_behaviour_is_told_on_the_pod(lab: Lab) -> None:
    wrong = plain("wrong")
    wrong["metadata"]["annotations"] = {"emulator.modelserve.dev/behavior": '{"main": {"lisn": 1}}'}
    lab.kubectl("apply", "-f", "-", body=wrong)
    lab.kubectl("wait", "--for=condition=Ready", "pod/wrong", "--timeout=40s")
    events = lab.get("events", "--field-selector", "involvedObject.name=wrong")["items"]
    told = next(event["message"] for event in events if event["reason"] == "InvalidBehavior")
    assert "pod default/wrong: main.lisn: Extra inputs are not permitted" in told
    lab.kubectl("delete", "pod", "wrong", "--timeout=20s")


def test_a_lower_count_removes_nodes_and_a_deleted_pool_all_of_them(lab: Lab) -> None:
    lab.kubectl("patch", "gpupool", "dgx", "--type=merge", "-p", '{"spec": {"nodes": 1}}')
    lab.kubectl("wait", "--for=delete", "node/dgx-1", "--timeout=20s")
    lab.kubectl("delete", "gpupool", "dgx")
    lab.kubectl("wait", "--for=delete", "node/dgx-0", "--timeout=20s")
    left = [node["metadata"]["name"] for node in lab.get("nodes")["items"]]
    assert [name for name in left if name.startswith("dgx-")] == []
