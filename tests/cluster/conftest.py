"""A ModelServe and what a user does with it, on the session's cluster with all our processes."""

import dataclasses
import http.client
import json
import signal
import subprocess
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
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
        return self.post(json.dumps(self.body(**changes)))

    def body(self, **changes: Any) -> Document:
        """What a chat request of a few tokens says."""
        return {
            "model": self.name,
            "messages": [{"role": "user", "content": "hello there"}],
            "max_tokens": 7,
            "ignore_eos": True,
        } | changes

    def post(self, body: str) -> tuple[int, dict[str, str], str]:
        """Send anything to the gateway."""
        connection = self.connection()
        try:
            answer = self.begin(connection, body)
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()

    def begin(self, connection: http.client.HTTPConnection, body: str) -> http.client.HTTPResponse:
        """Send it; the answer's head is there, its body still comes."""
        kind = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/chat/completions", body, kind)
        return connection.getresponse()

    def connection(self) -> http.client.HTTPConnection:
        """To the gateway."""
        address = urllib.parse.urlsplit(self.gateway_url).netloc
        return http.client.HTTPConnection(address, timeout=90)


class Beside:
    """One more of our processes, beside those of a cluster."""

    def __init__(self, command: tuple[str, ...], output: Path) -> None:
        self._output = output
        with output.open("w") as told:
            self._process = subprocess.Popen(command, stdout=told, stderr=subprocess.STDOUT)

    def said(self) -> str:
        """All that it wrote."""
        return self._output.read_text()

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it, if it has not ended."""
        self._process.send_signal(number)
        self._process.wait(20)


@pytest.fixture(scope="session")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Beside]]:
    """Starts one more process on a cluster, with the flags of the cluster's own but for these."""
    outputs, started = tmp_path_factory.mktemp("beside"), list[Beside]()

    def start(cluster: local.LocalCluster, name: str, *flags: str) -> Beside:
        command = (*cluster.command(name), "--metrics-listen=127.0.0.1:0", *flags)
        started.append(Beside(command, outputs / str(len(started))))
        return started[-1]

    yield start
    for each in started:
        each.end()


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
