"""Faults on a real control plane: what kubectl shows of them, and that all is well afterwards."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.cluster

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
PROBE = {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 1}


def engine(name: str, node: str = "dgx-0", faults: object = ()) -> dict[str, Any]:
    """A vLLM Deployment of one replica on that node."""
    container = {
        "name": "server",
        "image": "vllm/vllm-openai:v0.33.0",
        "args": ["--model", MODEL],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        "startupProbe": PROBE | {"failureThreshold": 600},
        "readinessProbe": PROBE | {"failureThreshold": 2},
        "livenessProbe": PROBE | {"failureThreshold": 4},
    }
    annotations = {"emulator.modelserve.dev/faults": json.dumps(faults)} if faults else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}, "annotations": annotations},
                "spec": {
                    "nodeSelector": {"kubernetes.io/hostname": node},
                    "terminationGracePeriodSeconds": 2,
                    "containers": [container],
                },
            },
        },
    }


@pytest.fixture(scope="module")
def served(emulated: Any) -> Iterator[str]:
    """A pod that is ready, on the first node and its first GPU."""
    emulated.apply(engine("victim"))
    emulated.kubectl("rollout", "status", "deployment/victim", "--timeout=60s")
    yield "victim"
    emulated.kubectl("delete", "deployment", "victim")


def container(emulated: Any, app: str) -> Any:
    found = emulated.pods(app)[0]["status"].get("containerStatuses") or [{}]
    return found[0]


def waiting(emulated: Any, app: str) -> str:
    """What its container waits for."""
    state = container(emulated, app).get("state", {})
    return str(state.get("waiting", {}).get("reason", ""))


def reasons(emulated: Any, app: str) -> set[str]:
    """The reasons of its pod's events."""
    name = emulated.pods(app)[0]["metadata"]["name"]
    found = emulated.get("events", "--field-selector", f"involvedObject.name={name}")["items"]
    return {event["reason"] for event in found}


def well(emulated: Any, app: str) -> bool:
    return bool(container(emulated, app).get("ready"))


def test_an_image_that_cannot_be_pulled_comes_later(emulated: Any) -> None:
    fault = {"type": "ImagePullError", "durationSeconds": 60}
    body = engine("pull", faults=[fault])
    body["spec"]["template"]["spec"]["containers"][0]["image"] = "vllm/vllm-openai:v0.34.0"
    emulated.apply(body)
    emulated.until(lambda: "Failed" in reasons(emulated, "pull"), "the failure")
    # The event is told at once, the status with the next sync.
    failed = ("ErrImagePull", "ImagePullBackOff")
    emulated.until(lambda: waiting(emulated, "pull") in failed, "the reason")
    emulated.until(lambda: well(emulated, "pull"), "the pull", 60)
    emulated.kubectl("delete", "deployment", "pull")


def test_corrupt_weights_loop_and_say_why(emulated: Any) -> None:
    emulated.apply(engine("corrupt", faults=[{"type": "CorruptWeights"}]))
    emulated.until(lambda: container(emulated, "corrupt").get("restartCount", 0) > 0, "a crash")
    assert "SafetensorError" in emulated.kubectl("logs", "deployment/corrupt", "--previous")
    emulated.kubectl("delete", "deployment", "corrupt")


def test_a_hung_engine_is_restarted_by_its_liveness_probe(emulated: Any, served: str) -> None:
    name = emulated.pods(served)[0]["metadata"]["name"]
    before = container(emulated, served)["restartCount"]
    emulated.servelab("fault", "inject", "HungEngine", f"pod/{name}")
    emulated.until(lambda: container(emulated, served)["restartCount"] > before, "the restart")
    assert "Unhealthy" in reasons(emulated, served)
    told = json.loads(emulated.servelab("fault", "list", "-o", "json"))
    assert [(each["type"], each["holds"]) for each in told] == [("HungEngine", True)]
    emulated.servelab("fault", "clear", f"pod/{name}")
    emulated.until(lambda: well(emulated, served), "the engine", 60)


def test_an_xid_takes_a_gpu_and_what_ran_there(emulated: Any, served: str) -> None:
    before = container(emulated, served)["restartCount"]
    emulated.servelab("fault", "inject", "XID", "node/dgx-0", "--for", "100")
    emulated.until(lambda: gpus(emulated, "dgx-0") == 7, "the GPU to go")
    emulated.until(lambda: container(emulated, served)["restartCount"] > before, "the restart")
    emulated.until(lambda: gpus(emulated, "dgx-0") == 8, "the GPU to come back")
    emulated.servelab("fault", "clear", "node/dgx-0")
    emulated.until(lambda: well(emulated, served), "the engine", 60)


def gpus(emulated: Any, node: str) -> int:
    return int(emulated.get("node", node)["status"]["allocatable"]["nvidia.com/gpu"])


def test_gpus_vanish_and_what_runs_stays(emulated: Any, served: str) -> None:
    emulated.servelab("fault", "inject", "GPUsVanish", "pool/dgx", "--for", "60")
    emulated.until(lambda: gpus(emulated, "dgx-0") == gpus(emulated, "dgx-1") == 0, "no GPU")
    assert well(emulated, served)
    emulated.until(lambda: gpus(emulated, "dgx-0") == gpus(emulated, "dgx-1") == 8, "the GPUs")
    emulated.servelab("fault", "clear", "pool/dgx")


def test_a_spot_node_goes_after_its_notice_and_another_comes(emulated: Any) -> None:
    emulated.apply(engine("spot", "dgx-1"))
    emulated.kubectl("rollout", "status", "deployment/spot", "--timeout=60s")
    node, pod = emulated.get("node", "dgx-1"), emulated.pods("spot")[0]
    emulated.servelab("fault", "inject", "SpotReclaim", "node/dgx-1", "--notice", "60")
    emulated.until(
        lambda: bool(emulated.get("node", "dgx-1")["spec"].get("unschedulable")), "the cordon"
    )
    uid = node["metadata"]["uid"]
    emulated.until(
        lambda: any(
            each["metadata"]["name"] == "dgx-1" and each["metadata"]["uid"] != uid
            for each in emulated.get("nodes")["items"]
        ),
        "another machine",
    )
    emulated.until(lambda: bool(emulated.pods("spot")) and well(emulated, "spot"), "the engine", 60)
    assert emulated.pods("spot")[0]["metadata"]["uid"] != pod["metadata"]["uid"]
    emulated.kubectl("delete", "deployment", "spot")


def test_a_lost_node_is_not_ready_and_comes_back(emulated: Any, served: str) -> None:
    emulated.servelab("fault", "inject", "NodeLost", "node/dgx-0", "--for", "1300")
    emulated.until(lambda: ready(emulated, "dgx-0") == "Unknown", "the node to be lost", 70)
    emulated.until(lambda: ready(emulated, "dgx-0") == "True", "the node to come back", 40)
    emulated.servelab("fault", "clear", "node/dgx-0")
    found = emulated.pods(served)[0]
    emulated.until(lambda: condition(emulated.pods(served)[0], "Ready") == "True", "the pod")
    assert found["metadata"]["uid"] == emulated.pods(served)[0]["metadata"]["uid"]


def ready(emulated: Any, node: str) -> str:
    return condition(emulated.get("node", node), "Ready")


def condition(item: Any, kind: str) -> str:
    found = (each["status"] for each in item["status"]["conditions"] if each["type"] == kind)
    return str(next(found, ""))
