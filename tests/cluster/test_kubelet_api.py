"""kubectl's exec, port-forward, attach and top, through the real API server to emulated nodes."""

import contextlib
import json
import os
import re
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.cluster

KUBECTL = str(Path(sys.executable).with_name("kubectl"))
SERVELAB = (sys.executable, "-P", "-m", "servelab")
MODEL = "meta-llama/Llama-3.1-8B-Instruct"
POOL = {
    "apiVersion": "emulator.modelserve.dev/v1alpha1",
    "kind": "GPUPool",
    "metadata": {"name": "dgx"},
    "spec": {"gpu": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8, "nodes": 2},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "llm"},
    "spec": {
        "nodeName": "dgx-0",
        "containers": [
            {
                "name": "server",
                "image": "vllm/vllm-openai:v0.33.0",
                "args": ["--model", MODEL, "--max-model-len", "8192"],
                "env": [{"name": "GREETING", "value": "hello"}],
                "ports": [{"containerPort": 8000, "name": "http"}],
                "resources": {"limits": {"nvidia.com/gpu": "2"}},
                "readinessProbe": {
                    "httpGet": {"path": "/health", "port": 8000},
                    "periodSeconds": 1,
                },
            }
        ],
    },
}


class Lab:
    """A control plane of this module's own, with an emulator beside it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        flags = ("--only-control-plane", "--detach", "--time-scale", "30")
        command = [*SERVELAB, "up", "--data-dir", str(directory), *flags]
        subprocess.run(command, check=True, capture_output=True, timeout=180)
        run = directory / "run"
        self.emulator = subprocess.Popen(
            [
                *(*SERVELAB, "emulator", "--time-scale=30", "--workers=1"),
                f"--kubeconfig={run / 'emulator.kubeconfig'}",
                f"--kubelet-client-ca={run / 'pki' / 'ca.crt'}",
                f"--kubelet-cert={run / 'pki' / 'kubelet.crt'}",
                f"--kubelet-key={run / 'pki' / 'kubelet.key'}",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.emulator.stdout is not None
        self.port = json.loads(self.emulator.stdout.readline())["kubeletPort"]
        self.environment = {**os.environ, "KUBECONFIG": str(run / "kubeconfig")}

    def kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [KUBECTL, *arguments]
        return subprocess.run(
            command,
            input=stdin,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )

    def told(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl prints; a failure is one of the test."""
        done = self.kubectl(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, *command: str, stdin: str = "") -> str:
        """Run a command in the engine's container."""
        options = ("-i",) if stdin else ()
        return self.told("exec", *options, "llm", "--", *command, stdin=stdin)

    def ask(self, path: str, token: str = "", certificate: str = "") -> tuple[int, str]:
        """Ask the kubelet API without the API server between."""
        pki = self.directory / "run" / "pki"
        trusting = ssl.create_default_context(cafile=pki / "ca.crt")
        if certificate:
            trusting.load_cert_chain(pki / f"{certificate}.crt", pki / f"{certificate}.key")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10, context=trusting) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    @contextlib.contextmanager
    def forwarded(self, port: int) -> Iterator[int]:
        """A local port behind which the pod's is."""
        command = [KUBECTL, "port-forward", "pod/llm", f":{port}"]
        process = subprocess.Popen(
            command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            match = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
            assert match is not None
            yield int(match[1])
        finally:
            process.terminate()
            process.communicate(timeout=10)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    found = Lab(tmp_path_factory.mktemp("lab") / "cluster")
    try:
        found.told("apply", "-f", "-", stdin=json.dumps(POOL))
        found.told("wait", "--for=condition=Ready", "gpupool/dgx", "--timeout=30s")
        found.told("apply", "-f", "-", stdin=json.dumps(POD))
        found.told("wait", "--for=condition=Ready", "pod/llm", "--timeout=60s")
        yield found
    finally:
        found.emulator.terminate()
        found.emulator.communicate(timeout=15)
        subprocess.run([*SERVELAB, "down", "--data-dir", found.directory], check=False)


def test_nvidia_smi_shows_what_the_engine_holds(lab: Lab) -> None:
    table = lab.run("nvidia-smi")
    assert re.search(r"\|   1  NVIDIA H100 80GB HBM3 ", table)
    query = ("--query-gpu=memory.used,utilization.gpu", "--format=csv,noheader,nounits")
    used = [line.split(", ") for line in lab.run("nvidia-smi", *query).splitlines()]
    assert int(used[0][0]) > 70_000
    assert int(used[1][0]) == 0  # the engine takes one GPU of two


def test_a_gpu_is_busy_while_its_engine_is(lab: Lab) -> None:
    pod = json.loads(lab.told("get", "pod", "llm", "-o", "json"))
    dial = pod["metadata"]["annotations"]["emulator.modelserve.dev/dial"]
    asked = {"model": MODEL, "prompt": "hello", "max_tokens": 8000, "ignore_eos": True}
    url, body = f"http://{dial}/v1/completions", json.dumps(asked).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    clients = [threading.Thread(target=urllib.request.urlopen, args=(request,)) for _ in range(4)]
    for client in clients:
        client.start()
    query = ("--query-gpu=utilization.gpu,power.draw", "--format=csv,noheader,nounits")
    busy, idle = (line.split(", ") for line in lab.run("nvidia-smi", *query).splitlines())
    for client in clients:
        client.join()
    assert int(busy[0]) > 50 > int(idle[0])
    assert float(busy[1]) > 2 * float(idle[1])


@pytest.mark.parametrize("websockets", ["true", "false"])
def test_exec_takes_input_and_gives_the_exit_code(
    lab: Lab, websockets: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # kubectl speaks WebSockets, or SPDY; the API server speaks SPDY to this kubelet.
    monkeypatch.setitem(lab.environment, "KUBECTL_REMOTE_COMMAND_WEBSOCKETS", websockets)
    assert lab.run("cat", stdin="one\ntwo\n") == "one\ntwo\n"
    done = lab.kubectl("exec", "llm", "--", "sh", "-c", "echo $GREETING; nope; exit 3")
    assert (done.stdout, done.returncode) == ("hello\n", 3)
    assert done.stderr == "sh: 1: nope: not found\ncommand terminated with exit code 3\n"


def test_a_missing_program_fails_as_on_a_real_node(lab: Lab) -> None:
    done = lab.kubectl("exec", "llm", "--", "foo")
    assert done.returncode == 1
    assert (
        'unable to start container process: exec: "foo": executable file not found' in done.stderr
    )


def test_a_script_runs_line_by_line(lab: Lab) -> None:
    assert lab.run("sh", stdin="hostname\nexit 0\n") == "llm\n"


def test_a_client_reaches_the_engine_through_a_forwarded_port(lab: Lab) -> None:
    with lab.forwarded(8000) as port:
        for _ in range(3):
            address = f"http://127.0.0.1:{port}/v1/models"
            with urllib.request.urlopen(address, timeout=10) as response:
                assert json.load(response)["data"][0]["id"] == MODEL


def test_a_port_without_listener_is_refused(lab: Lab) -> None:
    with lab.forwarded(9999) as port, pytest.raises(ConnectionError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("metrics/resource", 'container_cpu_usage_seconds_total{container="server"'),
        ("metrics/dcgm", 'DCGM_FI_DEV_FB_USED{gpu="0"'),
        ("stats/summary", '"nodeName": "dgx-0"'),
        ("pods", '"PodList"'),
        ("healthz", "ok"),
    ],
)
def test_an_administrator_reads_of_each_node_what_concerns_it(
    lab: Lab, path: str, words: str
) -> None:
    status, text = lab.ask(f"/nodes/dgx-0/{path}", certificate="admin")
    assert (status, words in text) == (200, True)
    assert "llm" not in lab.ask(f"/nodes/dgx-1/{path}", certificate="admin")[1]


def test_tokens_are_let_in_as_their_roles_say(lab: Lab) -> None:
    lab.told("create", "serviceaccount", "reader")
    token = lab.told("create", "token", "reader").strip()
    assert lab.ask("/nodes/dgx-0/metrics/resource") == (401, "Unauthorized")
    assert lab.ask("/nodes/dgx-0/metrics/resource", "rubbish") == (401, "Unauthorized")
    status, text = lab.ask("/nodes/dgx-0/stats/summary", token)
    user = "system:serviceaccount:default:reader"
    expected = f"Forbidden (user={user}, verb=get, resource=nodes, subresource(s)=[stats])\n"
    assert (status, text) == (403, expected)
    role = ("--verb=get", "--resource=nodes/metrics,nodes/proxy")
    lab.told("create", "clusterrole", "metrics-reader", *role)
    binding = ("--clusterrole=metrics-reader", "--serviceaccount=default:reader")
    lab.told("create", "clusterrolebinding", "metrics-reader", *binding)
    status, text = lab.ask("/nodes/dgx-0/metrics/resource", token)
    assert (status, "node_cpu_usage_seconds_total" in text) == (200, True)
    status, text = lab.ask("/exec/default/llm/server?output=1&command=ls", token)
    assert (status, "verb=create" in text) == (403, True)


def test_the_node_says_where_its_metrics_are(lab: Lab) -> None:
    node: Any = json.loads(lab.told("get", "node", "dgx-1", "-o", "json"))
    path = node["metadata"]["annotations"]["metrics.k8s.io/resource-metrics-path"]
    assert path == "/nodes/dgx-1/metrics/resource"
