"""Two emulators share the nodes; one is killed, and the other goes on with its pods."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.cluster

SERVELAB = (sys.executable, "-P", "-m", "servelab")
KUBECTL = Path(sys.executable).with_name("kubectl")
HOLDER = "emulator.modelserve.dev/holder"
NODES = 6
POOL = {
    "apiVersion": "emulator.modelserve.dev/v1alpha1",
    "kind": "GPUPool",
    "metadata": {"name": "dgx"},
    "spec": {"gpu": "NVIDIA-L4", "gpusPerNode": 1, "nodes": NODES, "taints": []},
}
CONTAINER = {"name": "main", "image": "docker.io/library/busybox:1"}
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


class Lab:
    """A control plane, and emulators by name."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.emulators: dict[str, subprocess.Popen[str]] = {}
        self.ports: dict[str, int] = {}
        subprocess.run(
            [*SERVELAB, "up", "--data-dir", directory, "--only-control-plane", "--detach"],
            check=True,
            capture_output=True,
            timeout=180,
        )

    def start(self, name: str) -> None:
        run = self.directory / "run"
        self.emulators[name] = subprocess.Popen(
            [
                *(*SERVELAB, "emulator", "--workers=1", f"--shard={name}"),
                f"--kubeconfig={run / 'emulator.kubeconfig'}",
                f"--kubelet-client-ca={run / 'pki' / 'ca.crt'}",
                f"--kubelet-cert={run / 'pki' / 'kubelet.crt'}",
                f"--kubelet-key={run / 'pki' / 'kubelet.key'}",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        output = self.emulators[name].stdout
        assert output is not None
        told = json.loads(output.readline())
        self.ports[name] = told["kubeletPort"]

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        found = self.emulators.pop(name)
        found.send_signal(number)
        found.communicate(timeout=15)

    def kubectl(self, *arguments: str, body: object = None) -> str:
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

    def get(self, *arguments: str) -> list[Any]:
        found: list[Any] = json.loads(self.kubectl("get", *arguments, "-o", "json"))["items"]
        return found

    def holders(self) -> dict[str, str]:
        """Who plays each node."""
        leases = self.get("leases", "-n", "kube-node-lease")
        noted = {x["metadata"]["name"]: x["metadata"].get("annotations") or {} for x in leases}
        return {name: notes.get(HOLDER, "") for name, notes in noted.items() if "dgx-" in name}

    def endpoints(self) -> dict[str, int]:
        """The port of each node's kubelet API."""
        return {
            node["metadata"]["name"]: node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
            for node in self.get("nodes")
        }

    def until(self, met: Callable[[], bool], what: str, limit_s: float = 60.0) -> None:
        give_up = time.monotonic() + limit_s
        while not met():
            assert time.monotonic() < give_up, f"waited in vain for {what}"
            time.sleep(0.5)

    def close(self) -> None:
        for name in list(self.emulators):
            self.kill(name, signal.SIGTERM)
        subprocess.run([*SERVELAB, "down", "--data-dir", self.directory], check=False)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    found = Lab(tmp_path_factory.mktemp("shards") / "cluster")
    try:
        for name in ("a", "b"):
            found.start(name)
        found.kubectl("apply", "-f", "-", body=POOL)
        found.kubectl("wait", "--for=condition=Ready", "gpupool/dgx", "--timeout=60s")
        found.kubectl("apply", "-f", "-", body=DEPLOYMENT)
        found.kubectl("rollout", "status", "deployment/spread", "--timeout=60s")
        yield found
    finally:
        found.close()


def test_both_play_nodes(lab: Lab) -> None:
    holders = lab.holders()
    assert set(holders.values()) == {"a", "b"}
    assert lab.endpoints() == {name: lab.ports[holder] for name, holder in holders.items()}


def test_one_that_is_killed_is_replaced_by_the_other(lab: Lab) -> None:
    before = {pod["metadata"]["uid"] for pod in lab.get("pods")}
    lab.kill("a")
    lab.until(lambda: set(lab.holders().values()) == {"b"}, "the takeover")
    told = dict.fromkeys(lab.holders(), lab.ports["b"])
    lab.until(lambda: lab.endpoints() == told, "the other's kubelet API on all nodes")
    pods = lab.get("pods")
    assert {pod["metadata"]["uid"] for pod in pods} == before
    assert [pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods] == [0] * NODES
    conditions = [node["status"]["conditions"] for node in lab.get("nodes")]
    ready = [c["status"] for each in conditions for c in each if c["type"] == "Ready"]
    assert ready == ["True"] * NODES


def test_logs_of_all_pods_are_served_by_the_other(lab: Lab) -> None:
    for pod in lab.get("pods"):
        lab.kubectl("logs", pod["metadata"]["name"])


def test_one_that_comes_gets_its_share(lab: Lab) -> None:
    lab.start("a")
    lab.until(lambda: set(lab.holders().values()) == {"a", "b"}, "a share of the nodes")
    lab.kubectl("rollout", "restart", "deployment/spread")
    lab.kubectl("rollout", "status", "deployment/spread", "--timeout=90s")
