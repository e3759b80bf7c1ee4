"""Whatever is bound to an emulated node lives: controllers of all kinds, engines of all makers."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.cluster

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
TRITON = "/opt/tritonserver/python/openai/openai_frontend/main.py"
TOLERATED = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
SERVER = {"name": "main", "image": "nginx:1.29", "imagePullPolicy": "IfNotPresent"}
ENGINES: dict[str, dict[str, Any]] = {
    "vllm": {"image": "vllm/vllm-openai:v0.33.0", "command": ["vllm", "serve", MODEL]},
    "sglang": {
        "image": "lmsysorg/sglang:v0.5.3",
        "command": ["python3", "-m", "sglang.launch_server", "--model-path", MODEL],
    },
    "tgi": {
        "image": "ghcr.io/huggingface/text-generation-inference:3.3.5",
        "args": ["--model-id", MODEL],
    },
    "nim": {"image": "nvcr.io/nim/meta/llama-3.1-8b-instruct:1.8.0"},
    "trtllm": {
        "image": "nvcr.io/nvidia/tensorrt-llm/release:1.0.0",
        "command": ["trtllm-serve", MODEL],
    },
    "triton": {
        "image": "nvcr.io/nvidia/tritonserver:25.06-trtllm-python-py3",
        "command": ["python3", TRITON, "--model-repository", "/models", "--tokenizer", MODEL],
    },
}
PATHS = {"tgi": "/info"}


def workload(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    """A controller of one pod template, selected by its name."""
    container = spec.pop("container", SERVER)
    pod = {"tolerations": TOLERATED, "terminationGracePeriodSeconds": 1, "containers": [container]}
    pod |= spec.pop("pod", {})
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            **({} if kind == "Job" else {"selector": {"matchLabels": {"app": name}}}),
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
            **spec,
        },
    }


def test_a_deployment_of_an_unknown_image_runs(emulated: Any) -> None:
    emulated.apply(workload("Deployment", "web", replicas=3, container=SERVER | {"image": "a/b:1"}))
    emulated.rolled_out("web")


def test_a_job_completes(emulated: Any) -> None:
    words = json.dumps({"main": {"exitAfterSeconds": 10, "log": ["1 done"]}})
    body = workload("Job", "job", completions=2, parallelism=2, pod={"restartPolicy": "Never"})
    meta = body["spec"]["template"]["metadata"]
    meta["annotations"] = {"emulator.modelserve.dev/behavior": words}
    emulated.apply(body)
    emulated.kubectl("wait", "--for=condition=Complete", "job/job", "--timeout=60s")
    assert emulated.get("job", "job")["status"]["succeeded"] == 2
    assert emulated.kubectl("logs", "job/job").strip() == "done"


def test_a_daemon_set_runs_on_every_node(emulated: Any) -> None:
    emulated.apply(workload("DaemonSet", "agent"))
    emulated.rolled_out("agent", kind="daemonset")
    assert {pod["spec"]["nodeName"] for pod in emulated.pods("agent")} == {"dgx-0", "dgx-1"}


def test_a_stateful_set_comes_up_in_order_and_keeps_its_names(emulated: Any) -> None:
    probe = {"readinessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 1}}
    body = workload("StatefulSet", "db", replicas=2, serviceName="db", container=SERVER | probe)
    emulated.apply(body)
    emulated.rolled_out("db", kind="statefulset")
    before = emulated.get("pod", "db-1")["metadata"]["uid"]
    emulated.kubectl("delete", "pod", "db-1")
    emulated.rolled_out("db", kind="statefulset")
    assert emulated.get("pod", "db-1")["metadata"]["uid"] != before


@pytest.fixture(scope="module")
def engines(emulated: Any) -> Iterator[None]:
    """One of each maker, started together."""
    limits = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    containers = {name: {"name": "server", **limits, **given} for name, given in ENGINES.items()}
    emulated.apply(*(workload("Deployment", n, container=c) for n, c in containers.items()))
    yield
    emulated.kubectl("delete", "deployment", *ENGINES)


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_that_knows_nothing_of_us_serves(emulated: Any, engines: None, name: str) -> None:
    emulated.rolled_out(name)
    emulated.until(
        f"{name} to name its model",
        lambda: listing(emulated.dial(name), PATHS.get(name, "/v1/models")),
        lambda told: "llama-3.1-8b-instruct" in told.lower(),
    )
    told = emulated.pod(name)["status"]["conditions"]
    assert "modelserve.dev/Starting" in [entry["type"] for entry in told]


def listing(dial: str, path: str) -> str:
    """What an engine says of its models; or why it says nothing."""
    try:
        with urllib.request.urlopen(f"http://{dial}{path}", timeout=5) as answer:
            text: str = answer.read().decode()
            return text
    except OSError as error:
        return repr(error)


def test_a_pod_of_two_engines_and_a_sidecar_lives_and_drains(emulated: Any) -> None:
    probe = {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 1}
    one = {"name": "one", **ENGINES["vllm"], "startupProbe": probe | {"failureThreshold": 600}}
    limits = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    two = {"name": "two", **ENGINES["vllm"], "args": ["--port", "8001"], **limits}
    side = SERVER | {"name": "side", "restartPolicy": "Always"}
    pod = {"containers": [one | limits, two], "initContainers": [side]}
    emulated.apply(workload("Deployment", "pair", pod=pod))
    emulated.rolled_out("pair")
    dials = "emulator.modelserve.dev/dial", "emulator.modelserve.dev/dial.two"
    annotations = emulated.pod("pair")["metadata"]["annotations"]
    assert len({annotations[name] for name in dials}) == 2
    name = emulated.pod("pair")["metadata"]["name"]
    assert "Application startup complete" in emulated.kubectl("logs", name, "-c", "one")
    emulated.kubectl("delete", "deployment", "pair")
    emulated.kubectl("wait", "--for=delete", f"pod/{name}", "--timeout=60s")
    assert emulated.pods("pair") == []
