"""What a node tells: its start, its CSINode, cordons; and what an engine on a slice has."""

import re
import urllib.request
from typing import Any

import pytest

pytestmark = pytest.mark.cluster

# What kubelet 1.37.2 tells as it starts, recorded, and which of it with the node's UID.
START = {
    "Starting": False,
    "NodeHasSufficientMemory": False,
    "NodeHasNoDiskPressure": False,
    "NodeHasSufficientPID": False,
    "NodeAllocatableEnforced": False,
    "NodeReady": True,
}
POOL = {"apiVersion": "emulator.modelserve.dev/v1alpha1", "kind": "GPUPool"}
CUT = {
    "gpu": "NVIDIA-H100-80GB-HBM3",
    "gpusPerNode": 1,
    "nodes": 1,
    "mig": {"profiles": {"1g.10gb": 7}},
    "drain": {"noticeSeconds": 5},
}


def told(emulated: Any, node: str) -> list[Any]:
    """The events of a node's kubelet."""
    path = f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3D{node}"
    events = emulated.seen(path)["items"]
    return [each for each in events if each["source"].get("component") == "kubelet"]


@pytest.fixture(scope="module")
def cut(emulated: Any) -> str:
    """A node whose GPU is cut into slices."""
    emulated.apply(POOL | {"metadata": {"name": "cut"}, "spec": CUT})
    emulated.kubectl("wait", "--for=condition=Ready", "gpupool/cut", "--timeout=60s")
    return "cut-0"


def test_a_node_tells_of_its_start_what_a_real_kubelet_tells(emulated: Any, cut: str) -> None:
    csi = emulated.until(
        "the CSINode",
        lambda: emulated.seen("/apis/storage.k8s.io/v1/csinodes")["items"],
        lambda found: any(each["metadata"]["name"] == cut for each in found),
    )
    uid = emulated.node(cut)["metadata"]["uid"]
    owners = [
        each["metadata"]["ownerReferences"] for each in csi if each["metadata"]["name"] == cut
    ]
    assert owners == [[{"apiVersion": "v1", "kind": "Node", "name": cut, "uid": uid}]]
    found = {
        each["reason"]: each["involvedObject"].get("uid") == uid for each in told(emulated, cut)
    }
    assert found == START


def test_an_engine_on_a_slice_has_the_slices_memory(emulated: Any, cut: str) -> None:
    container = {
        "name": "server",
        "image": "vllm/vllm-openai:v0.33.0",
        "args": ["--model", "Qwen/Qwen3-0.6B", "--max-model-len", "2048"],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    spec = {"containers": [container], "nodeSelector": {"kubernetes.io/hostname": cut}}
    labels = {"app": "sliced"}
    emulated.apply(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "sliced", "labels": labels}}
        | {"spec": spec}
    )
    dial = emulated.dial("sliced")

    def log() -> str:
        # Until its status is told, the kubelet has no log of a container that runs already.
        return str(emulated.try_kubectl("logs", "sliced", check=False).stdout)

    emulated.until("the log", log, lambda said: "KV cache" in said)
    size = re.search(r"GPU KV cache size: ([\d,]+) tokens", log())
    assert size is not None
    # 114,688 bytes a token; a whole H100 has room for more than 500,000.
    assert 20_000 < int(size[1].replace(",", "")) < 75_000
    emulated.until("the engine", lambda: _answers(dial), bool)
    emulated.kubectl("delete", "pod", "sliced", "--wait=false")


def _answers(dial: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{dial}/health", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def test_a_cordon_is_told_when_the_kubelet_sees_it(emulated: Any, cut: str) -> None:
    for verb, reason in (("cordon", "NodeNotSchedulable"), ("uncordon", "NodeSchedulable")):
        emulated.kubectl(verb, cut)
        events = emulated.until(
            reason,
            lambda: told(emulated, cut),
            lambda found, wanted=reason: wanted in {each["reason"] for each in found},
        )
        message = next(each["message"] for each in events if each["reason"] == reason)
        assert message == f"Node {cut} status is now: {reason}"


def test_the_csi_node_goes_with_its_node(emulated: Any, cut: str) -> None:
    emulated.kubectl("delete", "gpupool", "cut")
    emulated.until(
        "the end of the CSINode",
        lambda: emulated.seen("/apis/storage.k8s.io/v1/csinodes")["items"],
        lambda found: all(each["metadata"]["name"] != cut for each in found),
    )
