"""Faults on a real control plane: what kubectl shows of them, and that all is well afterwards."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.cluster

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
LOST = {
    "apiVersion": "emulator.modelserve.dev/v1alpha1",
    "kind": "GPUPool",
    "metadata": {"name": "lost"},
    "spec": {"gpu": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 1, "nodes": 1},
}
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


@pytest.fixture(scope="module", autouse=True)
def lost(emulated: Any) -> str:
    """A node of one more pool, lost from here on: Kubernetes takes 50 real seconds to say so."""
    emulated.apply(LOST)
    emulated.kubectl("wait", "--for=condition=Ready", "gpupool/lost", "--timeout=60s")
    emulated.apply(engine("lost", "lost-0"))
    emulated.rolled_out("lost")
    emulated.servelab("fault", "inject", "NodeLost", "node/lost-0", "--for", "100000")
    return "lost-0"


@pytest.fixture(scope="module")
def served(emulated: Any, lost: str) -> Iterator[str]:
    """A pod that is ready, on the first node and its first GPU."""
    emulated.apply(engine("victim"))
    emulated.rolled_out("victim")
    yield "victim"
    emulated.kubectl("delete", "deployment", "victim")


def server(emulated: Any, app: str) -> Any:
    """The status of the engine's container; empty before it has one."""
    found = emulated.pods(app)
    statuses = found[0]["status"].get("containerStatuses") if found else None
    return statuses[0] if statuses else {}


def restarts(emulated: Any, app: str) -> int:
    return int(server(emulated, app).get("restartCount", 0))


def waiting(emulated: Any, app: str) -> str:
    """What its container waits for."""
    state = server(emulated, app).get("state", {})
    return str(state.get("waiting", {}).get("reason", ""))


def reasons(emulated: Any, app: str) -> set[str]:
    """The reasons of its pod's events."""
    name = emulated.pods(app)[0]["metadata"]["name"]
    path = f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3D{name}"
    return {event["reason"] for event in emulated.seen(path)["items"]}


def gets_well(emulated: Any, app: str) -> None:
    """Wait until its engine is ready, and nothing else."""
    emulated.until(
        f"the engine of {app}", lambda: server(emulated, app), lambda told: told.get("ready")
    )


def gpus(emulated: Any, *nodes: str) -> list[int]:
    """GPUs that each node offers."""
    found = (emulated.node(node)["status"]["allocatable"] for node in nodes)
    return [int(each["nvidia.com/gpu"]) for each in found]


def test_an_image_that_cannot_be_pulled_comes_later(emulated: Any) -> None:
    body = engine("pull", faults=[{"type": "ImagePullError"}])
    body["spec"]["template"]["spec"]["containers"][0]["image"] = "vllm/vllm-openai:v0.34.0"
    emulated.apply(body)
    emulated.until("a pod", lambda: emulated.pods("pull"))
    told = emulated.until(
        "the failure", lambda: reasons(emulated, "pull"), lambda told: "Failed" in told
    )
    assert {"Pulling", "Failed"} <= told
    # The event is told at once, the status with the next sync.
    failed = ("ErrImagePull", "ImagePullBackOff")
    emulated.until("the reason", lambda: waiting(emulated, "pull"), lambda told: told in failed)
    emulated.servelab("fault", "clear", f"pod/{emulated.pod('pull')['metadata']['name']}")
    gets_well(emulated, "pull")
    assert "Pulled" in reasons(emulated, "pull")
    emulated.kubectl("delete", "deployment", "pull")


def test_corrupt_weights_loop_and_say_why(emulated: Any) -> None:
    emulated.apply(engine("corrupt", faults=[{"type": "CorruptWeights"}]))
    emulated.until("a crash", lambda: restarts(emulated, "corrupt"))
    assert "SafetensorError" in emulated.kubectl("logs", "deployment/corrupt", "--previous")
    emulated.kubectl("delete", "deployment", "corrupt")


def test_a_hung_engine_is_restarted_by_its_liveness_probe(emulated: Any, served: str) -> None:
    name, before = emulated.pod(served)["metadata"]["name"], restarts(emulated, served)
    emulated.servelab("fault", "inject", "HungEngine", f"pod/{name}")
    emulated.until("a restart", lambda: restarts(emulated, served), lambda told: told > before)
    assert "Unhealthy" in reasons(emulated, served)
    told = json.loads(emulated.servelab("fault", "list", "-o", "json"))
    assert ("HungEngine", True) in [(each["type"], each["holds"]) for each in told]
    emulated.servelab("fault", "clear", f"pod/{name}")
    gets_well(emulated, served)


def test_an_xid_takes_a_gpu_and_what_ran_there(emulated: Any, served: str) -> None:
    before = restarts(emulated, served)
    emulated.servelab("fault", "inject", "XID", "node/dgx-0", "--for", "100")
    emulated.until("a GPU less", lambda: gpus(emulated, "dgx-0"), lambda told: told == [7])
    emulated.until("a restart", lambda: restarts(emulated, served), lambda told: told > before)
    emulated.until("the GPU", lambda: gpus(emulated, "dgx-0"), lambda told: told == [8])
    emulated.servelab("fault", "clear", "node/dgx-0")
    gets_well(emulated, served)


def test_gpus_vanish_and_what_runs_stays(emulated: Any, served: str) -> None:
    before, nodes = restarts(emulated, served), ("dgx-0", "dgx-1")
    emulated.servelab("fault", "inject", "GPUsVanish", "pool/dgx")
    emulated.until("no GPU", lambda: gpus(emulated, *nodes), lambda told: told == [0, 0])
    assert (server(emulated, served)["ready"], restarts(emulated, served)) == (True, before)
    emulated.servelab("fault", "clear", "pool/dgx")
    emulated.until("the GPUs", lambda: gpus(emulated, *nodes), lambda told: told == [8, 8])


def test_a_spot_node_goes_after_its_notice_and_another_comes(emulated: Any) -> None:
    emulated.apply(engine("spot", "dgx-1"))
    emulated.rolled_out("spot")
    node, pod = emulated.node("dgx-1"), emulated.pod("spot")
    emulated.servelab("fault", "inject", "SpotReclaim", "node/dgx-1", "--notice", "60")
    emulated.until(
        "the cordon",
        lambda: emulated.node("dgx-1")["spec"],
        lambda spec: spec.get("unschedulable"),
    )
    old = node["metadata"]["uid"]
    emulated.until(
        "another machine of that name",
        lambda: {n["metadata"]["name"]: n["metadata"]["uid"] for n in nodes(emulated)},
        lambda uids: uids.get("dgx-1", old) != old,
    )
    emulated.until(
        "another pod",
        lambda: [each["metadata"]["uid"] for each in emulated.pods("spot")],
        lambda uids: uids and pod["metadata"]["uid"] not in uids,
    )
    gets_well(emulated, "spot")
    emulated.kubectl("delete", "deployment", "spot")


def nodes(emulated: Any) -> list[Any]:
    found: list[Any] = emulated.seen("/api/v1/nodes")["items"]
    return found


def test_a_lost_node_is_not_ready_and_comes_back(emulated: Any, lost: str) -> None:
    before, ran = emulated.pod("lost")["metadata"]["uid"], restarts(emulated, "lost")

    def ready() -> str:
        return condition(emulated.node(lost), "Ready")

    emulated.until("the node to be lost", ready, lambda told: told == "Unknown", 120)
    assert condition(emulated.pod("lost"), "Ready") == "False"
    emulated.servelab("fault", "clear", f"node/{lost}")
    emulated.until("the node to come back", ready, lambda told: told == "True")
    emulated.until(
        "its pod to be ready",
        lambda: condition(emulated.pod("lost"), "Ready"),
        lambda told: told == "True",
    )
    assert (emulated.pod("lost")["metadata"]["uid"], restarts(emulated, "lost")) == (before, ran)
    emulated.kubectl("delete", "deployment/lost", "gpupool/lost")


def condition(item: Any, kind: str) -> str:
    found = (each["status"] for each in item["status"]["conditions"] if each["type"] == kind)
    return str(next(found, ""))
