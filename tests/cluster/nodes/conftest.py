"""Emulated nodes on a control plane without operator and gateway: what a foreign user sees."""

import http.client
import itertools
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from servelab.cluster import local, workloads

DIAL = "emulator.modelserve.dev/dial"
Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]


class Emulated:
    """A control plane with one emulator, and the commands about them."""

    def __init__(
        self, cluster: local.LocalCluster, kubectl: Kubectl, until: Callable[..., Any]
    ) -> None:
        self.until = until
        self.cluster = cluster
        self.scale = cluster.options.time_scale
        self.environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
        self.try_kubectl = kubectl

    def kubectl(self, *arguments: str, body: object = None) -> str:
        """What kubectl prints; a failure is one of the test."""
        return self.try_kubectl(*arguments, stdin=None if body is None else json.dumps(body)).stdout

    def servelab(self, *arguments: str) -> str:
        """What servelab prints."""
        command = [sys.executable, "-P", "-m", "servelab", *arguments]
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=90
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def apply(self, *bodies: object) -> None:
        """Apply these objects."""
        self.kubectl("apply", "-f", "-", body={"apiVersion": "v1", "kind": "List", "items": bodies})

    def get(self, *arguments: str) -> Any:
        """What ``kubectl get`` shows."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def seen(self, path: str) -> Any:
        """The same from the API server itself, for those who look again and again."""
        return self.cluster.control_plane.admin.get(path)

    def node(self, name: str) -> Any:
        """One node."""
        return self.seen(f"/api/v1/nodes/{name}")

    def pods(self, app: str) -> list[Any]:
        """The pods of that label."""
        found: list[Any] = self.seen(f"/api/v1/namespaces/default/pods?labelSelector=app%3D{app}")[
            "items"
        ]
        return found

    def pod(self, app: str) -> Any:
        """The only one."""
        found = self.pods(app)
        assert len(found) == 1, [each["metadata"]["name"] for each in found]
        return found[0]

    def dial(self, app: str) -> str:
        """Where its engine really listens, as soon as that is told."""
        found: dict[str, str] = self.until(
            f"the address of {app}",
            lambda: self.pod(app)["metadata"].get("annotations") or {},
            lambda told: DIAL in told,
        )
        return found[DIAL]

    def rolled_out(self, *names: str, kind: str = "deployment") -> None:
        """Wait for the roll-out of these, and see that all their pods are ready."""
        for name in names:
            self.kubectl("rollout", "status", f"{kind}/{name}", "--timeout=90s")
            status = self.get(kind, name)["status"]
            wanted = status.get("replicas", status.get("desiredNumberScheduled"))
            ready = status.get("readyReplicas", status.get("numberReady"))
            assert ready == wanted > 0, f"{kind} {name} has rolled out, and shows {status}"

    def ask_kubelet(
        self, node: str, path: str, token: str = "", certificate: str = ""
    ) -> tuple[int, str]:
        """Ask a node's kubelet API without the API server between: status and text."""
        pki = self.cluster.kubeconfig.parent / "pki"
        port = self.node(node)["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        trusting = ssl.create_default_context(cafile=pki / "ca.crt")
        if certificate:
            trusting.load_cert_chain(pki / f"{certificate}.crt", pki / f"{certificate}.key")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=trusting)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def start_emulated(
    tmp_path_factory: pytest.TempPathFactory,
    kubectl_for: Callable[[Path], Kubectl],
    until: Callable[..., Any],
) -> Iterator[Callable[..., Emulated]]:
    """Starts a control plane with an emulator on it, or none; it ends with the session."""
    started: list[local.LocalCluster] = []

    def start(time_scale: float, *processes: str) -> Emulated:
        options = local.Options(
            name=f"emulated-{next(_numbers)}",
            data_dir=tmp_path_factory.mktemp("emulated") / "cluster",
            time_scale=time_scale,
            processes=processes,
            keep=False,
        )
        started.append(local.LocalCluster(options).start())
        started[-1].install()
        return Emulated(started[-1], kubectl_for(started[-1].kubeconfig), until)

    yield start
    deaths = [death.sentence() for cluster in started for death in cluster.deaths()]
    for cluster in started:
        cluster.stop()
    assert not deaths, "\n".join(deaths)


@pytest.fixture(scope="session")
def emulated(start_emulated: Callable[..., Emulated]) -> Emulated:
    """One for all modules that ask for it, with a pool of two nodes of eight GPUs."""
    found = start_emulated(20.0, workloads.EMULATOR)
    pool = {
        "apiVersion": "emulator.modelserve.dev/v1alpha1",
        "kind": "GPUPool",
        "metadata": {"name": "dgx"},
        "spec": {"gpu": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8, "nodes": 2},
    }
    found.apply(pool)
    found.kubectl("wait", "--for=condition=Ready", "gpupool/dgx", "--timeout=60s")
    return found
