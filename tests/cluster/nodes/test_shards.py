"""Two emulators share the nodes; one is killed, and the other goes on with its pods."""

import json
import signal
from collections.abc import Callable
from typing import Any

import pytest

from servelab.cluster import workloads

pytestmark = pytest.mark.cluster

HOLDER = "emulator.modelserve.dev/holder"
NODES = 6
POOL = {
    "apiVersion": "emulator.modelserve.dev/v1alpha1",
    "kind": "GPUPool",
    "metadata": {"name": "dgx"},
    "spec": {"gpu": "NVIDIA-L4", "gpusPerNode": 1, "nodes": NODES, "taints": []},
}
CONTAINER = {"name": "main", "image": "docker.io/library/nginx:1"}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "spread"}},
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "spread"},
    "spec": {
        "replicas": NODES,
        "selector": {"matchLabels": {"app": "spread"}},
        "template": {
            "metadata": {"labels": {"app": "spread"}},
            "spec": {"containers": [CONTAINER], "topologySpreadConstraints": [SPREAD]},
        },
    },
}


class Shards:
    """Emulators by name, on one control plane."""

    def __init__(self, emulated: Any, beside: Callable[..., Any]) -> None:
        self.emulated = emulated
        self.emulators: dict[str, Any] = {}
        self.ports: dict[str, int] = {}
        self._beside = beside

    def begin(self, name: str, *flags: str) -> None:
        """Start one, which may have to wait for others."""
        cluster = self.emulated.cluster
        data = f"--data-dir={cluster.home.directory / name}"
        self.emulators[name] = self._beside(
            cluster, workloads.EMULATOR, "--workers=1", data, *flags
        )

    def start(self, name: str) -> None:
        """Start one that shares, and wait until it says that it is ready."""
        self.begin(name, f"--shard={name}")
        self.ready(name)

    def ready(self, name: str) -> None:
        line = self.emulated.until(f"{name} to be ready", lambda: self.said(name, "{"))[0]
        self.ports[name] = json.loads(line)["kubeletPort"]

    def said(self, name: str, word: str) -> list[str]:
        """Its lines with that word in them."""
        return [line for line in self.emulators[name].said().splitlines() if word in line]

    def end(self, name: str) -> None:
        self.emulators.pop(name).end()

    def kill(self, name: str) -> None:
        self.emulators.pop(name).end(signal.SIGKILL)

    def holders(self) -> dict[str, str]:
        """Who plays each node."""
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        leases = [each["metadata"] for each in self.emulated.seen(path)["items"]]
        noted = {each["name"]: each.get("annotations") or {} for each in leases}
        return {name: notes.get(HOLDER, "") for name, notes in noted.items() if "dgx-" in name}

    def pods(self) -> set[str]:
        """UIDs of the Deployment's."""
        return {pod["metadata"]["uid"] for pod in self.emulated.pods("spread")}

    def endpoints(self) -> dict[str, int]:
        """The port of each node's kubelet API."""
        return {
            node["metadata"]["name"]: node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
            for node in self.emulated.seen("/api/v1/nodes")["items"]
        }

    def played_by(self, *names: str) -> None:
        """Wait until these, and no others, play nodes."""
        self.emulated.until(
            f"nodes played by {names}",
            self.holders,
            lambda holders: set(holders.values()) == set(names),
            90,
        )


@pytest.fixture(scope="module")
def shards(start_emulated: Callable[..., Any], beside: Callable[..., Any]) -> Shards:
    emulated = start_emulated(1.0)
    found = Shards(emulated, beside)
    for name in ("a", "b"):
        found.start(name)
    emulated.apply(POOL)
    emulated.kubectl("wait", "--for=condition=Ready", "gpupool/dgx", "--timeout=60s")
    emulated.apply(DEPLOYMENT)
    emulated.rolled_out("spread")
    return found


def test_both_play_nodes(shards: Shards) -> None:
    shards.played_by("a", "b")
    holders = shards.holders()
    told = {name: shards.ports[holder] for name, holder in holders.items()}
    shards.emulated.until("the API of who plays it", shards.endpoints, lambda ports: ports == told)


def test_one_that_is_killed_is_replaced_by_the_other(shards: Shards) -> None:
    emulated = shards.emulated
    before = shards.pods()
    shards.kill("a")
    shards.played_by("b")
    told = dict.fromkeys(shards.holders(), shards.ports["b"])
    emulated.until(
        "the other's kubelet API on all nodes", shards.endpoints, lambda ports: ports == told
    )
    assert shards.pods() == before
    pods = emulated.pods("spread")
    assert [pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods] == [0] * NODES
    conditions = [n["status"]["conditions"] for n in emulated.seen("/api/v1/nodes")["items"]]
    ready = [c["status"] for each in conditions for c in each if c["type"] == "Ready"]
    assert ready == ["True"] * NODES


def test_logs_of_all_pods_are_served_by_the_other(shards: Shards) -> None:
    names = [pod["metadata"]["name"] for pod in shards.emulated.pods("spread")]
    tried = [shards.emulated.try_kubectl("logs", name, check=False) for name in names]
    assert [(done.returncode, done.stderr) for done in tried] == [(0, "")] * NODES


def test_one_that_comes_gets_its_share(shards: Shards) -> None:
    shards.start("a")
    shards.played_by("a", "b")
    shards.emulated.kubectl("rollout", "restart", "deployment/spread")
    shards.emulated.rolled_out("spread")


def test_one_without_a_name_waits_until_those_that_share_have_gone(shards: Shards) -> None:
    emulated = shards.emulated
    before = emulated.until("no old pods", shards.pods, lambda found: len(found) == NODES)
    shards.begin("alone")
    emulated.until("its sentence", lambda: shards.said("alone", "plays no nodes until then"))
    shards.end("a")
    shards.played_by("b")
    assert shards.said("alone", "{") == []
    shards.end("b")
    shards.ready("alone")
    told = dict.fromkeys(shards.endpoints(), shards.ports["alone"])
    emulated.until("its API on all nodes", shards.endpoints, lambda ports: ports == told)
    assert shards.pods() == before
    shards.begin("other")
    emulated.until("its sentence", lambda: shards.said("other", "held by"))
    shards.kill("alone")
    shards.ready("other")
