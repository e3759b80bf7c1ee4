"""A ModelServe and what a user does with it, on the session's cluster with all our processes."""

import dataclasses
import http.client
import json
import subprocess
import time
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from servelab.cluster import local
from servelab.demo import examples

Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]
Document = dict[str, Any]
T = TypeVar("T")

WAIT = "--timeout=60s"
SPEC: Document = {
    "model": {"name": "meta-llama/Llama-3.1-8B-Instruct"},
    "engine": {"maxModelLength": 4096},
    "gpu": {"product": "NVIDIA-H100-80GB-HBM3"},
}


@dataclasses.dataclass(frozen=True)
class Model:
    """One ModelServe in a namespace of its own."""

    name: str
    namespace: str
    kubectl: Kubectl
    gateway_url: str

    def apply(self, **spec: Any) -> None:
        """Apply it and wait until it takes requests."""
        self.try_to_apply(**spec)
        self.wait("condition=Ready")

    def try_to_apply(
        self, *, check: bool = True, **spec: Any
    ) -> "subprocess.CompletedProcess[str]":
        """Apply it, whatever comes of it."""
        body = {
            "apiVersion": "modelserve.dev/v1alpha1",
            "kind": "ModelServe",
            "metadata": {"name": self.name},
            "spec": SPEC | spec,
        }
        return self.run("apply", "-f", "-", stdin=json.dumps(body), check=check)

    def run(
        self, *arguments: str, stdin: str | None = None, check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        """kubectl in its namespace."""
        return self.kubectl("-n", self.namespace, *arguments, stdin=stdin, check=check)

    def wait(self, wanted: str, kind: str = "modelserve") -> None:
        """``kubectl wait --for`` of the object; the test fails with what is there instead."""
        self.run("wait", f"{kind}/{self.name}", f"--for={wanted}", WAIT)

    def wait_for(self, path: str, value: object, kind: str = "modelserve") -> None:
        """Wait until a field has a value."""
        self.wait(f"jsonpath={{{path}}}={value}", kind)

    def get(self, kind: str = "modelserve") -> Document:
        """The whole object."""
        document: Document = json.loads(self.run("get", kind, self.name, "-o", "json").stdout)
        return document

    def count(self) -> int:
        """The Deployment's count."""
        return int(self.get("deployment")["spec"]["replicas"])

    def pods(self) -> list[Document]:
        """Its pods, whatever they are at."""
        found: list[Document] = json.loads(self.run("get", "pods", "-o", "json").stdout)["items"]
        return found

    def condition(self, kind: str) -> Document:
        """One of its conditions; empty if it is not there."""
        found = self.get().get("status", {}).get("conditions", ())
        return next((one for one in found if one["type"] == kind), {})

    def chat(self, **changes: Any) -> tuple[int, Any]:
        """One chat request through the gateway: status and body."""
        status, _, body = self.ask(**changes)
        return status, json.loads(body)

    def ask(self, **changes: Any) -> tuple[int, dict[str, str], str]:
        """The same: status, headers and body."""
        body = {
            "model": self.name,
            "messages": [{"role": "user", "content": "hello there"}],
            "max_tokens": 7,
            "ignore_eos": True,
        }
        return self.post(json.dumps(body | changes))

    def post(self, body: str) -> tuple[int, dict[str, str], str]:
        """Send anything to the gateway."""
        address = urllib.parse.urlsplit(self.gateway_url).netloc
        connection = http.client.HTTPConnection(address, timeout=90)
        path, kind = "/v1/chat/completions", {"Content-Type": "application/json"}
        try:
            connection.request("POST", path, body, kind)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()


@pytest.fixture(scope="session")
def pool(control_plane: local.LocalCluster, kubectl: Kubectl) -> str:
    """Our processes, and the pool of the examples: one node of eight GPUs."""
    control_plane.start_processes()
    kubectl("apply", "-f", str(examples.directory() / "gpu-pool.yaml"))
    kubectl("wait", "gpupool/dgx", "--for=jsonpath={.status.readyNodes}=1", WAIT)
    return "dgx"


@pytest.fixture
def model(
    local_cluster: local.LocalCluster, pool: str, kubectl: Kubectl, namespace: str
) -> Iterator[Model]:
    """A name for a ModelServe of the test's own; gone, and its GPUs free, when the test ends."""
    made = Model(f"m-{namespace}", namespace, kubectl, local_cluster.gateway_url)
    yield made
    made.run("delete", "modelserve", made.name, "--ignore-not-found")


@pytest.fixture(scope="session")
def model_of() -> type[Model]:
    """The class, for a model that outlives a test."""
    return Model


@pytest.fixture(scope="session")
def until() -> Callable[..., Any]:
    """Waits for what nobody tells."""

    def wait(
        what: str,
        look: Callable[[], T],
        met: Callable[[T], object] = bool,
        limit_s: float = 60.0,
    ) -> T:
        """Look until it is as wanted; the test fails with what was seen last if it never is."""
        give_up = time.monotonic() + limit_s
        while not met(found := look()):
            assert time.monotonic() < give_up, f"waited in vain for {what}; last seen: {found!r}"
            time.sleep(0.1)
        return found

    return wait
