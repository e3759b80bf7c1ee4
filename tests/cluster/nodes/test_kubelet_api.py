"""kubectl's exec, port-forward, attach and top, through the real API server to emulated nodes."""

import contextlib
import json
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.cluster

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
KUBECTL = str(Path(sys.executable).with_name("kubectl"))
Run = Callable[..., str]
Forwarded = Callable[[int], contextlib.AbstractContextManager[int]]
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


@pytest.fixture(scope="module")
def pod(emulated: Any) -> Iterator[str]:
    """A ready engine on the first node, with two GPUs."""
    emulated.apply(POD)
    emulated.kubectl("wait", "--for=condition=Ready", "pod/llm", "--timeout=60s")
    yield "llm"
    emulated.kubectl("delete", "pod", "llm")


@pytest.fixture
def run(emulated: Any, pod: str) -> Run:
    """Runs a command in the engine's container."""

    def run(*command: str, stdin: str = "") -> str:
        options = ("-i",) if stdin else ()
        done = emulated.try_kubectl("exec", *options, pod, "--", *command, stdin=stdin)
        return str(done.stdout)

    return run


@pytest.fixture
def forwarded(emulated: Any, pod: str) -> Forwarded:
    """Gives a local port behind which the pod's is."""

    @contextlib.contextmanager
    def forward(port: int) -> Iterator[int]:
        command = [KUBECTL, "port-forward", f"pod/{pod}", f":{port}"]
        process = subprocess.Popen(
            command,
            env=emulated.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            match = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
            assert match is not None
            yield int(match[1])
        finally:
            process.terminate()
            process.communicate(timeout=10)

    return forward


def test_nvidia_smi_shows_what_the_engine_holds(run: Run) -> None:
    table = run("nvidia-smi")
    assert re.search(r"\|   1  NVIDIA H100 80GB HBM3 ", table)
    query = ("--query-gpu=memory.used,utilization.gpu", "--format=csv,noheader,nounits")
    used = [line.split(", ") for line in run("nvidia-smi", *query).splitlines()]
    assert int(used[0][0]) > 70_000
    assert int(used[1][0]) == 0  # the engine takes one GPU of two


@pytest.fixture
def busy(emulated: Any, pod: str) -> Iterator[None]:
    """The engine has requests, one after the other, as long as the test looks."""
    dial = emulated.get("pod", pod)["metadata"]["annotations"]["emulator.modelserve.dev/dial"]
    asked = {"model": MODEL, "prompt": "hello", "max_tokens": 1000, "ignore_eos": True}
    url, body = f"http://{dial}/v1/completions", json.dumps(asked).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            urllib.request.urlopen(request, timeout=30).close()

    clients = [threading.Thread(target=ask) for _ in range(4)]
    for client in clients:
        client.start()
    yield
    over.set()
    for client in clients:
        client.join()


def test_a_gpu_is_busy_while_its_engine_is(emulated: Any, busy: None, run: Run) -> None:
    query = ("--query-gpu=utilization.gpu,power.draw", "--format=csv,noheader,nounits")

    def lines() -> list[list[str]]:
        return [line.split(", ") for line in run("nvidia-smi", *query).splitlines()]

    one, other = emulated.until("a busy GPU", lines, lambda told: int(told[0][0]) > 50)
    assert int(other[0]) < 50
    assert float(one[1]) > 2 * float(other[1])


@pytest.mark.parametrize("websockets", ["true", "false"])
def test_exec_takes_input_and_gives_the_exit_code(
    emulated: Any, run: Run, websockets: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # kubectl speaks WebSockets, or SPDY; the API server passes on to this kubelet what it gets.
    monkeypatch.setenv("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", websockets)
    assert run("cat", stdin="one\ntwo\n") == "one\ntwo\n"
    script = ("sh", "-c", "echo $GREETING; nope; exit 3")
    done = emulated.try_kubectl("exec", "llm", "--", *script, check=False)
    assert (done.stdout, done.returncode) == ("hello\n", 3)
    assert done.stderr == "sh: 1: nope: not found\ncommand terminated with exit code 3\n"


def test_a_missing_program_fails_as_on_a_real_node(emulated: Any, pod: str) -> None:
    done = emulated.try_kubectl("exec", "llm", "--", "foo", check=False)
    assert done.returncode == 1
    # The runtime says so to the kubelet, and that to kubectl.
    twice = 2 * "Internal error occurred: "
    assert done.stderr.startswith(f"error: {twice}error executing command in container: failed to")
    assert (
        'unable to start container process: exec: "foo": executable file not found' in done.stderr
    )


def test_a_script_runs_line_by_line(run: Run) -> None:
    assert run("sh", stdin="hostname\nexit 0\n") == "llm\n"


@pytest.mark.parametrize("websockets", ["true", "false"])
def test_a_client_reaches_the_engine_through_a_forwarded_port(
    forwarded: Forwarded, websockets: str, emulated: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(emulated.environment, "KUBECTL_PORT_FORWARD_WEBSOCKETS", websockets)
    with forwarded(8000) as port:
        for _ in range(3):
            address = f"http://127.0.0.1:{port}/v1/models"
            with urllib.request.urlopen(address, timeout=10) as response:
                assert json.load(response)["data"][0]["id"] == MODEL


def test_a_port_without_listener_is_refused(forwarded: Forwarded) -> None:
    with forwarded(9999) as port, pytest.raises(ConnectionError):
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
    emulated: Any, pod: str, path: str, words: str
) -> None:
    status, text = emulated.ask_kubelet("dgx-0", f"/nodes/dgx-0/{path}", certificate="admin")
    assert (status, words in text) == (200, True)
    other = emulated.ask_kubelet("dgx-1", f"/nodes/dgx-1/{path}", certificate="admin")[1]
    assert f'"{pod}"' not in other


def test_tokens_are_let_in_as_their_roles_say(emulated: Any, pod: str) -> None:
    emulated.kubectl("create", "serviceaccount", "reader")
    token = emulated.kubectl("create", "token", "reader").strip()

    def ask(path: str, token: str = "") -> tuple[int, str]:
        answer: tuple[int, str] = emulated.ask_kubelet("dgx-0", path, token)
        return answer

    assert ask("/pods") == ask("/nodes/dgx-0/metrics/resource") == (401, "Unauthorized")
    assert ask("/nodes/dgx-0/metrics/resource", "rubbish") == (401, "Unauthorized")
    user = "system:serviceaccount:default:reader"
    expected = f"Forbidden (user={user}, verb=get, resource=nodes, subresource(s)=[stats])\n"
    assert ask("/nodes/dgx-0/stats/summary", token) == (403, expected)
    role = ("--verb=get", "--resource=nodes/metrics,nodes/proxy")
    emulated.kubectl("create", "clusterrole", "metrics-reader", *role)
    binding = ("--clusterrole=metrics-reader", "--serviceaccount=default:reader")
    emulated.kubectl("create", "clusterrolebinding", "metrics-reader", *binding)
    status, text = ask("/nodes/dgx-0/metrics/resource", token)
    assert (status, "node_cpu_usage_seconds_total" in text) == (200, True)
    status, text = ask(f"/exec/default/{pod}/server?output=1&command=ls", token)
    assert (status, "verb=create" in text) == (403, True)


def test_the_node_says_where_its_metrics_are(emulated: Any) -> None:
    path = emulated.node("dgx-1")["metadata"]["annotations"]["metrics.k8s.io/resource-metrics-path"]
    assert path == "/nodes/dgx-1/metrics/resource"
