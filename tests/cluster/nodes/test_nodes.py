"""Emulated GPU nodes on the real API server: a vLLM Deployment that knows nothing of us runs."""

import json
import signal
import threading
import urllib.request
from typing import Any

import pytest

from servelab.cluster import workloads

pytestmark = pytest.mark.cluster

IMAGE = "vllm/vllm-openai:v0.32.0"  # of no other module: it is pulled here
MODEL = "meta-llama/Llama-3.1-8B-Instruct"
# Nodes of one GPU each that read their weights from one backend.
SLOW = {
    "apiVersion": "emulator.modelserve.dev/v1alpha1",
    "kind": "GPUPool",
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
        "image": IMAGE,
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
                # A stream of 8,000 tokens ends within the grace.
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 120},
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
def served(emulated: Any) -> str:
    """A Deployment that has rolled out, and that the last test about it deletes."""
    emulated.apply(deployment("plain"))
    emulated.rolled_out("plain")
    return "plain"


def test_a_pool_gives_ready_nodes_with_gpus(emulated: Any) -> None:
    node = emulated.get("node", "dgx-1")
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"} in node["spec"][
        "taints"
    ]
    assert emulated.get("gpupool", "dgx")["status"]["readyNodes"] == 2


def test_a_foreign_vllm_deployment_is_served(emulated: Any, served: str) -> None:
    assert stream(emulated.dial(served), 3).endswith("data: [DONE]\n\n")


def test_its_pod_looks_like_a_kubelets(emulated: Any, served: str) -> None:
    status = emulated.pod(served)["status"]
    assert status["podIP"].startswith("10.200.")
    order = [entry["type"] for entry in status["conditions"]]
    assert order[:2] == ["PodReadyToStartContainers", "Initialized"]
    assert "@sha256:" in status["containerStatuses"][0]["imageID"]


def test_its_events_are_a_kubelets(emulated: Any, served: str) -> None:
    name = emulated.pod(served)["metadata"]["name"]
    events = emulated.get("events", "--field-selector", f"involvedObject.name={name}")["items"]
    reasons = [e["reason"] for e in events if e["source"].get("component") == "kubelet"]
    assert reasons[:4] == ["Pulling", "Pulled", "Created", "Started"]


def test_kubectl_logs_shows_the_engines_start(emulated: Any, served: str) -> None:
    assert "Application startup complete" in emulated.kubectl("logs", f"deployment/{served}")
    assert emulated.kubectl("logs", f"deployment/{served}", "--tail=1").count("\n") == 1


def test_its_image_is_listed_on_the_node(emulated: Any, served: str) -> None:
    node = emulated.get("node", emulated.pod(served)["spec"]["nodeName"])
    names = [name for image in node["status"]["images"] for name in image["names"]]
    assert f"docker.io/{IMAGE}" in names


def test_replicas_that_start_at_once_share_the_storage(emulated: Any) -> None:
    emulated.apply(SLOW)
    emulated.kubectl("wait", "--for=condition=Ready", "gpupool/slow", "--timeout=60s")
    body = deployment("four")
    body["spec"]["replicas"] = 4
    body["spec"]["template"]["spec"]["nodeSelector"] = {"emulator.modelserve.dev/pool": "slow"}
    emulated.apply(body)
    emulated.rolled_out("four")
    loads = [load_ms(pod) for pod in emulated.pods("four")]
    emulated.kubectl("delete", "deployment/four", "gpupool/slow")
    took_real_s = (max(end for _, end in loads) - min(start for start, _ in loads)) / 1000
    # 4 times 16.1 GB at 1 GB/s, which one alone would take up too.
    assert took_real_s * emulated.scale == pytest.approx(4 * 16.1, rel=0.03)


def load_ms(pod: Any) -> tuple[int, int]:
    """Start and end of a pod's weight load, Unix milliseconds."""
    told = json.loads(pod["metadata"]["annotations"]["modelserve.dev/phases"])
    load = next(stamp for stamp in told["stamps"] if stamp["phase"] == "WeightLoad")
    return load["start"], load["end"]


def test_a_start_goes_on_when_the_emulator_was_killed(emulated: Any, served: str) -> None:
    before = emulated.pod(served)["metadata"]["uid"]
    emulated.apply(deployment("late"))
    emulated.kubectl("wait", "--for=condition=PodScheduled", "pod", "-l", "app=late")
    emulated.cluster.restart(workloads.EMULATOR, signal.SIGKILL)
    emulated.rolled_out("late")
    assert emulated.pod("late")["status"]["containerStatuses"][0]["restartCount"] == 0
    assert emulated.pod(served)["metadata"]["uid"] == before
    assert stream(emulated.dial(served), 3).endswith("data: [DONE]\n\n")


def test_a_deleted_pod_finishes_its_streams(emulated: Any, served: str) -> None:
    answers: list[str] = []
    dial, name = emulated.dial(served), emulated.pod(served)["metadata"]["name"]
    client = threading.Thread(target=lambda: answers.append(stream(dial, 8000)))
    client.start()
    emulated.kubectl("delete", "pod", name, "--wait=false")
    assert client.is_alive(), "the stream was over before the pod was told to end"
    emulated.kubectl("wait", "--for=delete", f"pod/{name}", "--timeout=60s")
    client.join()
    emulated.kubectl("delete", "deployment", served)
    assert answers[0].endswith("data: [DONE]\n\n")


def plain(name: str, **container: Any) -> dict[str, Any]:
    """A pod of one container without an engine, put on a node by hand."""
    body = {"name": "main", "image": "docker.io/library/nginx:1", **container}
    spec = {"nodeName": "dgx-0", "containers": [body], "terminationGracePeriodSeconds": 1}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_a_pod_that_the_node_has_no_room_for_fails_as_a_kubelet_fails_it(emulated: Any) -> None:
    asking = plain("huge", resources={"limits": {"nvidia.com/gpu": "9"}})
    emulated.apply(asking)
    emulated.kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "pod/huge", "--timeout=60s")
    status = emulated.get("pod", "huge")["status"]
    assert status["reason"] == "OutOfnvidia.com/gpu"
    assert status["message"].startswith("Pod was rejected: Node didn't have enough resource")
    emulated.kubectl("delete", "pod", "huge", "--timeout=60s")


def test_a_pod_waits_for_its_configuration(emulated: Any) -> None:
    waiting = plain("waits", envFrom=[{"configMapRef": {"name": "late"}}])
    emulated.apply(waiting)
    reason = "{.status.containerStatuses[0].state.waiting.reason}"
    wanted = f"--for=jsonpath={reason}=CreateContainerConfigError"
    emulated.kubectl("wait", wanted, "pod/waits", "--timeout=60s")
    emulated.kubectl("create", "configmap", "late", "--from-literal=a=b")
    emulated.kubectl("wait", "--for=condition=Ready", "pod/waits", "--timeout=60s")
    assert emulated.get("pod", "waits")["status"]["containerStatuses"][0]["restartCount"] == 0
    emulated.kubectl("delete", "pod", "waits", "--timeout=60s")


def test_a_wrong_behaviour_is_told_on_the_pod(emulated: Any) -> None:
    wrong = plain("wrong")
    wrong["metadata"]["annotations"] = {"emulator.modelserve.dev/behavior": '{"main": {"lisn": 1}}'}
    emulated.apply(wrong)
    emulated.kubectl("wait", "--for=condition=Ready", "pod/wrong", "--timeout=60s")
    events = emulated.get("events", "--field-selector", "involvedObject.name=wrong")["items"]
    told = next(event["message"] for event in events if event["reason"] == "InvalidBehavior")
    assert "pod default/wrong: main.lisn: Extra inputs are not permitted" in told
    emulated.kubectl("delete", "pod", "wrong", "--timeout=60s")


def test_a_lower_count_removes_nodes_and_a_deleted_pool_all_of_them(emulated: Any) -> None:
    spec = {"gpu": "NVIDIA-L4", "gpusPerNode": 1, "nodes": 2}
    emulated.apply(SLOW | {"metadata": {"name": "few"}, "spec": spec})
    emulated.kubectl("wait", "--for=condition=Ready", "gpupool/few", "--timeout=60s")
    assert few(emulated) == ["few-0", "few-1"]
    emulated.kubectl("patch", "gpupool", "few", "--type=merge", "-p", '{"spec": {"nodes": 1}}')
    emulated.until("a node less", lambda: few(emulated), lambda names: names == ["few-0"])
    emulated.kubectl("delete", "gpupool", "few")
    emulated.until("no node", lambda: few(emulated), lambda names: names == [])


def few(emulated: Any) -> list[str]:
    """The nodes of that pool."""
    path = "/api/v1/nodes?labelSelector=emulator.modelserve.dev%2Fpool%3Dfew"
    return [node["metadata"]["name"] for node in emulated.seen(path)["items"]]
