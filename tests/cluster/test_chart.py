"""The chart as it stands: its accounts, its rules, and its processes with the arguments it gives.

No kubelet runs the pods, so each process is started here as its container would be: with the token
of its account, at an address of its own in place of a pod's, and nothing else.
"""

import base64
import contextlib
import dataclasses
import http.client
import json
import os
import re
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import helm_python
import pytest
import yaml

from servelab.cluster import installation, kubeconfig, local
from servelab.demo import examples

pytestmark = pytest.mark.cluster

Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]
Manifest = dict[str, Any]
NAMESPACE = installation.NAMESPACE
TIME_SCALE = 60
OURS = {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}
RESTRICTED = {"apiVersion": "v1", "kind": "Namespace", "metadata": OURS}
GPU = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
REAL_NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real-1", "labels": GPU}}
# Of this process alone, so that two test runs do not meet at the chart's ports.
NETWORK = f"127.{os.getpid() % 250 + 1}.{os.getpid() // 250 % 250}"
# Users of a container that no passwd names.
NAMELESS = "import pwd\ndef missing(uid): raise KeyError(uid)\npwd.getpwuid = missing\n"
EMULATOR = f"--as=system:serviceaccount:{NAMESPACE}:modelserve-emulator"


def rendered() -> list[Manifest]:
    """All of the chart, in the order in which Helm would create it."""
    with helm_python.Chart.load(str(installation.chart_directory())) as chart:
        files = chart.render({"timeScale": TIME_SCALE}, name="modelserve", namespace=NAMESPACE)
    texts = [text for path, text in files.items() if path.endswith(".yaml")]
    return list(installation.ordered([m for t in texts for m in yaml.safe_load_all(t) if m]))


@dataclasses.dataclass(frozen=True)
class Container:
    """The one container of a Deployment, at a loopback address of its own in place of a pod's."""

    manifest: Manifest
    address: str
    directory: Path

    @property
    def name(self) -> str:
        return str(self.manifest["name"])

    def start(self, own: Manifest, token: str) -> "subprocess.Popen[bytes]":
        """Run it with the kubeconfig of its account; what it prints goes to ``output``."""
        (self.directory / "token").write_text(token)
        (self.directory / "sitecustomize.py").write_text(NAMELESS)
        package, component = self.manifest["command"]
        words = [self._outside(word) for word in self.manifest["args"]]
        environment = {
            "KUBECONFIG": str(kubeconfig.write(self.directory / "kubeconfig", own)),
            "HOME": str(self.directory),
            "PYTHONPATH": str(self.directory),
            "PATH": os.environ["PATH"],
        }
        with self.output.open("w") as told:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", package, component, *words],
                env=environment,
                stdout=told,
                stderr=subprocess.STDOUT,
            )

    @property
    def output(self) -> Path:
        return self.directory / "output"

    def port(self, name: str) -> int:
        """One of its ports."""
        return next(int(p["containerPort"]) for p in self.manifest["ports"] if p["name"] == name)

    def answers(self, probe: str) -> bool:
        """Whether that probe succeeds, as a kubelet sends it."""
        get = self.manifest[probe]["httpGet"]
        try:
            return self.ask("GET", get["path"], self.port(get["port"]))[0] == 200
        except OSError:
            return False

    def ask(self, method: str, path: str, port: int, body: object = None) -> tuple[int, str]:
        """Status and text."""
        connection = http.client.HTTPConnection(self.address, port, timeout=60)
        with contextlib.closing(connection):
            kind = {"Content-Type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), kind)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def _outside(self, word: str) -> str:
        """What stands for all addresses and for a volume inside a pod, said from outside."""
        known = {"$(POD_IP)": self.address, "0.0.0.0": self.address}
        known["/etc/modelserve"] = str(self.directory)
        return re.sub("|".join(map(re.escape, known)), lambda found: known[found[0]], word)


@dataclasses.dataclass(frozen=True)
class Installed:
    """A control plane with the chart on it, and its processes."""

    cluster: local.LocalCluster
    kubectl: Kubectl
    until: Callable[..., Any]
    containers: dict[str, Container] = dataclasses.field(default_factory=dict)
    processes: dict[str, "subprocess.Popen[bytes]"] = dataclasses.field(default_factory=dict)

    def get(self, *arguments: str) -> Any:
        """What ``kubectl get`` shows."""
        return json.loads(self.kubectl("get", *arguments, "-o", "json").stdout)

    def start(self, found: Container) -> None:
        """Start it with the token of its account, in place of the one that runs."""
        self.stop(found.name)
        plane = self.cluster.control_plane
        secret = plane.admin.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/modelserve-internal")
        own = installation.account_kubeconfig(
            plane.admin, plane.server, plane.credentials.authority, f"modelserve-{found.name}"
        )
        token = base64.b64decode(secret["data"]["token"]).decode()
        self.containers[found.name] = found
        self.processes[found.name] = found.start(own, token)

    def ready(self) -> None:
        """Wait until all pass the probe that says so."""
        for name, found in self.containers.items():
            self.until(f"{name} to be ready", lambda f=found: f.answers("readinessProbe"))

    def stop(self, name: str) -> None:
        """End it, as a kubelet does; it has to end well."""
        process = self.processes.pop(name, None)
        if process is not None:
            process.terminate()
            assert process.wait(20) == 0

    def chat(self) -> None:
        """A request to the model, which has to be answered."""
        gateway = self.containers["gateway"]
        messages = [{"role": "user", "content": "hello"}]
        question = {"model": "llama-8b", "messages": messages, "max_tokens": 3}
        status, answer = gateway.ask("POST", "/v1/chat/completions", gateway.port("http"), question)
        assert status == 200, answer

    def pod(self) -> Manifest:
        """The model's only one."""
        (found,) = self.get("pods", "--namespace=default")["items"]
        return dict(found)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[local.LocalCluster]:
    """A control plane in which nothing of ours is."""
    directory = tmp_path_factory.mktemp("chart") / "cluster"
    options = local.Options(name="chart", data_dir=directory, processes=(), keep=False)
    with local.LocalCluster(options) as found:
        yield found


@pytest.fixture(scope="module")
def installed(
    cluster: local.LocalCluster,
    kubectl_for: Callable[[Path], Kubectl],
    until: Callable[..., Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installed]:
    """What ``helm install`` would create is there, and each process passes its probes."""
    admin, manifests = cluster.control_plane.admin, rendered()
    for manifest in (RESTRICTED, REAL_NODE, *manifests):
        admin.apply(manifest)
    until("the definitions", lambda: installation.established(admin, manifests))
    found = Installed(cluster, kubectl_for(cluster.kubeconfig), until)
    deployments = [m for m in manifests if m["kind"] == "Deployment"]
    try:
        for number, manifest in enumerate(deployments, 2):
            name, address = manifest["metadata"]["name"], f"{NETWORK}.{number}"
            container = manifest["spec"]["template"]["spec"]["containers"][0]
            found.start(Container(container, address, tmp_path_factory.mktemp(name)))
        found.ready()
        yield found
    finally:
        for name in [*found.processes]:
            found.stop(name)


@pytest.fixture(scope="module")
def served(installed: Installed) -> Manifest:
    """The pod of a model that has answered."""
    for example in ("gpu-pool", "llama-8b"):
        installed.kubectl("apply", "-f", str(examples.directory() / f"{example}.yaml"))
    installed.kubectl("wait", "modelserve/llama-8b", "--for=condition=Ready", "--timeout=60s")
    installed.chat()
    return installed.pod()


def test_engines_and_nodes_are_where_other_pods_reach_them(
    installed: Installed, served: Manifest
) -> None:
    emulator = installed.containers["emulator"].address
    dial = served["metadata"]["annotations"]["emulator.modelserve.dev/dial"]
    assert dial.rpartition(":")[0] == emulator
    addresses = installed.get("node", "dgx-0")["status"]["addresses"]
    # Pod networks such as kind's route to whatever a node calls its InternalIP.
    assert {"type": "ExternalIP", "address": emulator} in addresses
    assert "InternalIP" not in {entry["type"] for entry in addresses}


def test_an_address_of_another_type_goes(installed: Installed, served: Manifest) -> None:
    old = {"status": {"addresses": [{"type": "InternalIP", "address": "10.1.2.3"}]}}
    installed.kubectl("patch", "node", "dgx-0", "--subresource=status", "-p", json.dumps(old))
    installed.until(
        "the address to go",
        lambda: installed.get("node", "dgx-0")["status"]["addresses"],
        lambda found: {entry["type"] for entry in found} == {"ExternalIP", "Hostname"},
    )


def test_no_process_complains(installed: Installed, served: Manifest) -> None:
    told = "".join(each.output.read_text() for each in installed.containers.values())
    assert re.findall(r".*(?i:forbidden|cannot|refused|traceback).*", told) == []


@pytest.mark.parametrize("probe", ["startupProbe", "readinessProbe", "livenessProbe"])
def test_every_probe_of_the_chart_succeeds(probe: str, installed: Installed) -> None:
    having = [each for each in installed.containers.values() if probe in each.manifest]
    assert having
    assert [each.name for each in having if not each.answers(probe)] == []


def test_what_service_monitors_scrape_is_there(installed: Installed, served: Manifest) -> None:
    wanted = (
        ("operator", "metrics", "/metrics", "modelserve_desired_replicas"),
        ("gateway", "http", "/metrics", "modelserve_gateway_requests_total"),
        ("emulator", "metrics", "/metrics", "servelab_nodes"),
        ("emulator", "metrics", "/metrics/dcgm", "DCGM_FI_DEV_GPU_UTIL"),
    )
    for name, port, path, series in wanted:
        found = installed.containers[name]
        assert f"# HELP {series}" in found.ask("GET", path, found.port(port))[1]


@pytest.mark.parametrize(("known", "status"), [(True, 200), (False, 401)])
def test_the_kubelet_api_serves_the_api_server_and_nobody_else(
    known: bool, status: int, installed: Installed, served: Manifest
) -> None:
    # Its certificate is its own, which an API server set up by kubeadm does not look at either.
    context = ssl._create_unverified_context()
    if known:
        pair = installed.cluster.control_plane.credentials.kubelet_client
        context.load_cert_chain(pair.certificate, pair.key)
    emulator = installed.containers["emulator"]
    connection = http.client.HTTPSConnection(
        emulator.address, emulator.port("kubelet"), timeout=10, context=context
    )
    with contextlib.closing(connection):
        name = served["metadata"]["name"]
        connection.request("GET", f"/containerLogs/default/{name}/engine")
        with connection.getresponse() as answer:
            told = answer.read()
    assert (answer.status, b"vLLM" in told) == (status, known)


@pytest.mark.parametrize(
    "change", [("label", "x=y"), ("annotate", "x=y"), ("delete",)], ids=lambda change: change[0]
)
def test_the_emulator_may_change_no_node_but_its_own(
    change: tuple[str, ...], installed: Installed, served: Manifest
) -> None:
    verb, *given = change
    done = installed.kubectl(EMULATOR, verb, "node", "real-1", *given, check=False)
    assert "emulated nodes only" in done.stderr
    installed.kubectl(EMULATOR, "annotate", "node", "dgx-0", f"tests/{verb}=yes")


def test_nothing_of_ours_has_written_to_a_real_node(installed: Installed, served: Manifest) -> None:
    node = installed.cluster.control_plane.admin.get("/api/v1/nodes/real-1")
    managers = {entry["manager"] for entry in node["metadata"]["managedFields"]}
    assert "servelab" in managers  # the test itself
    assert managers <= {"servelab", "kube-controller-manager"}


def test_our_pods_are_admitted_and_stay_off_emulated_nodes(
    installed: Installed, served: Manifest
) -> None:
    pods = installed.until(
        "the pods of the Deployments",
        lambda: installed.get("pods", f"--namespace={NAMESPACE}")["items"],
        lambda found: len(found) == 3,
    )
    assert [pod["spec"].get("nodeName") for pod in pods] == [None] * 3


def test_who_may_edit_a_namespace_may_edit_its_modelserves(installed: Installed) -> None:
    for role, verb in (("view", "list"), ("edit", "create")):
        installed.kubectl("create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}")
        asked = ("auth", "can-i", verb, "modelserves.modelserve.dev", f"--as={role}")
        assert installed.kubectl(*asked, check=False).stdout.strip() == "yes"
    assert (
        "no"
        in installed.kubectl(
            "auth", "can-i", "create", "modelserves.modelserve.dev", "--as=view", check=False
        ).stdout
    )


def test_an_emulator_that_comes_back_elsewhere_is_found_there(
    installed: Installed, served: Manifest
) -> None:
    old = installed.containers["emulator"]
    new = dataclasses.replace(old, address=f"{NETWORK}.99")
    installed.start(new)
    installed.ready()
    installed.until(
        "the pod to tell where it is",
        lambda: installed.pod()["status"]["hostIPs"],
        lambda found: found == [{"ip": new.address}],
    )
    assert installed.pod()["metadata"]["uid"] == served["metadata"]["uid"]
    installed.chat()


def test_no_rule_is_missing(installed: Installed, served: Manifest) -> None:
    counted = installed.cluster.control_plane.admin.text("/metrics")
    attempts = dict(
        re.findall(r'^authorization_attempts_total\{result="(\S+)"\} (\S+)', counted, re.M)
    )
    # A request that no rule allows would count as "no-opinion".
    assert float(attempts["allowed"]) > 0
    assert attempts.keys() == {"allowed"}
