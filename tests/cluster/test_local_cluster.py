"""The local cluster itself: it serves, it is safe, and it leaves nothing behind."""

import contextlib
import dataclasses
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from modelserve import errors
from servelab.cluster import control_plane as plane
from servelab.cluster import local, processes, record, workloads

pytestmark = pytest.mark.cluster

Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]
SERVELAB = (sys.executable, "-P", "-m", "servelab")
SECRETS = "/api/v1/secrets"
GPU_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "gpu"},
    "spec": {
        "containers": [
            {"name": "a", "image": "a", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        ]
    },
}


@dataclasses.dataclass(frozen=True)
class Servelab:
    """Calls the command for a cluster in a directory of the test's own."""

    directory: Path

    def __call__(self, command: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run it to its end."""
        return subprocess.run(
            [*SERVELAB, command, *arguments, "--data-dir", self.directory],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=120,
        )

    def up(self, *flags: str) -> record.Record:
        """Start a control plane behind, or with other flags more."""
        done = self("up", "--detach", *(flags or ("--only-control-plane",)))
        assert done.returncode == 0, done.stderr
        running = record.read(self.directory)
        assert running is not None
        return running


@pytest.fixture
def servelab(tmp_path: Path) -> Iterator[Servelab]:
    command = Servelab(tmp_path / "cluster")
    yield command
    command("down")


def wait_for_end(*gone: record.Process) -> None:
    """Wait until all have ended; the test's own time limit ends the wait."""
    for process in gone:
        with contextlib.suppress(ProcessLookupError):
            ended = os.pidfd_open(process.pid)
            if process.alive():  # and not another one under its number
                select.select([ended], [], [])
            os.close(ended)


def test_the_api_server_is_ready(kubectl: Kubectl) -> None:
    assert kubectl("get", "--raw", "/readyz").stdout == "ok"


def test_the_server_reports_the_version_it_was_built_from(kubectl: Kubectl) -> None:
    version = json.loads(kubectl("version", "-o", "json").stdout)["serverVersion"]
    assert (version["gitVersion"], version["minor"]) == ("v1.37.2", "37")


def test_a_scaled_deployment_gets_its_pods(kubectl: Kubectl, namespace: str) -> None:
    kubectl("-n", namespace, "create", "deployment", "web", "--image=web")
    kubectl("-n", namespace, "scale", "deployment", "web", "--replicas=3")
    kubectl("-n", namespace, "wait", "deployment/web", "--for=jsonpath={.status.replicas}=3")
    names = kubectl("-n", namespace, "get", "pods", "-o", "name").stdout.split()
    assert len(names) == 3


def test_gpu_pods_of_others_get_the_toleration(kubectl: Kubectl, namespace: str) -> None:
    kubectl("-n", namespace, "create", "-f", "-", stdin=json.dumps(GPU_POD))
    path = "jsonpath={.spec.tolerations[*].key}"
    assert "nvidia.com/gpu" in kubectl("-n", namespace, "get", "pod", "gpu", "-o", path).stdout


def test_the_chart_publishes_the_time_scale(kubectl: Kubectl) -> None:
    path = "jsonpath={.data.timeScale}"
    found = kubectl("-n", "modelserve-system", "get", "configmap", "modelserve-time", "-o", path)
    assert float(found.stdout) == 60


@pytest.mark.parametrize("name", workloads.ALL)
def test_each_process_has_an_identity_of_its_own_that_reads_no_secrets(
    name: str, control_plane: local.LocalCluster, kubectl: Kubectl
) -> None:
    own = f"--kubeconfig={control_plane.home.run / f'{name}.kubeconfig'}"
    user: dict[str, Any] = json.loads(kubectl(own, "auth", "whoami", "-o", "json").stdout)
    assert user["status"]["userInfo"]["username"].endswith(f":modelserve-{name}")
    assert "Forbidden" in kubectl(own, "get", "--raw", SECRETS, check=False).stderr


def test_strangers_are_refused(control_plane: local.LocalCluster, kubectl: Kubectl) -> None:
    server = f"--server={control_plane.urls['api']}"
    refused = kubectl("--kubeconfig=/dev/null", server, "--insecure-skip-tls-verify", "get",
                      "--raw", SECRETS, "--username=a", "--password=b", check=False)  # fmt: skip
    assert refused.returncode != 0


def test_credentials_are_for_their_owner_only(control_plane: local.LocalCluster) -> None:
    files = [path for path in control_plane.home.run.rglob("*") if path.is_file()]
    secret = [path for path in files if path.suffix in (".key", ".kubeconfig", ".token")]
    assert secret
    assert [path for path in secret if path.stat().st_mode & 0o077] == []
    assert control_plane.home.directory.stat().st_mode & 0o077 == 0


def test_up_status_down_leaves_no_process_and_only_the_data(servelab: Servelab) -> None:
    running = servelab.up()
    status = json.loads(servelab("status", "-o", "json").stdout)
    assert status["ready"]
    assert set(status["processes"]) == set(plane.NAMES)
    second = servelab("up")
    assert (second.returncode, "already runs" in second.stderr) == (1, True)
    assert servelab("down").returncode == 0
    wait_for_end(running.supervisor, *running.children.values())
    assert {path.name for path in servelab.directory.iterdir()} == {"etcd", "logs", "emulator"}
    assert servelab("status").returncode == 1


def test_a_killed_supervisor_leaves_nothing_and_the_next_start_finds_the_data(
    servelab: Servelab, kubectl: Kubectl
) -> None:
    running = servelab.up()
    kubectl(f"--kubeconfig={running.kubeconfig}", "create", "configmap", "kept")
    os.kill(running.supervisor.pid, signal.SIGKILL)
    wait_for_end(running.supervisor, *running.children.values())
    assert "crashed" in servelab("status").stderr
    again = servelab.up()
    assert kubectl(f"--kubeconfig={again.kubeconfig}", "get", "configmap", "kept").stdout


def processes_of(servelab: Servelab) -> dict[str, Any]:
    status = json.loads(servelab("status", "-o", "json").stdout)
    return dict(status["processes"])


def test_what_ends_by_itself_is_brought_back_and_counted(
    servelab: Servelab, until: Callable[..., Any]
) -> None:
    running = servelab.up("--time-scale=60")
    killed = ("operator", "gateway", "emulator", "kube-apiserver", "kube-scheduler")
    for name in killed:
        os.kill(running.children[name].pid, signal.SIGKILL)

    def again() -> bool:
        found = processes_of(servelab)
        return all(found[n]["running"] and found[n]["restarts"] for n in killed)

    until("all are back", again)
    assert processes_of(servelab)["etcd"]["restarts"] == 0
    assert "started again in 1 s" in (servelab.directory / "logs" / "supervisor.log").read_text()


def test_an_operator_outlives_its_own_kind(
    servelab: Servelab, kubectl: Kubectl, until: Callable[..., Any]
) -> None:
    running = servelab.up("--time-scale=60")
    own, log = f"--kubeconfig={running.kubeconfig}", servelab.directory / "logs" / "operator.log"
    kubectl(own, "delete", "crd", "modelserves.modelserve.dev")
    until("it has noticed", lambda: "knows no ModelServe" in log.read_text())
    kubectl(own, "create", "-f", "crds/modelserves.modelserve.dev.yaml")
    until("it leads again", lambda: log.read_text().count('"ready": true') == 2)
    assert "Traceback" not in log.read_text()
    assert log.read_text().count("WARNING") == 1
    assert processes_of(servelab)["operator"]["restarts"] == 0


def test_a_control_plane_that_loses_its_data_stops_and_says_why(servelab: Servelab) -> None:
    running = servelab.up()
    os.kill(running.children["etcd"].pid, signal.SIGKILL)
    wait_for_end(running.supervisor, *running.children.values())
    assert (
        "etcd ended with signal SIGKILL"
        in (servelab.directory / "logs" / "supervisor.log").read_text()
    )


def test_a_taken_port_is_a_sentence_and_leaves_nothing(servelab: Servelab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = servelab("up", "--gateway-port", port)
    assert (refused.returncode, f"port {port} for the gateway is taken" in refused.stderr) == (
        1,
        True,
    )
    assert "Traceback" not in refused.stderr


def test_a_directory_with_other_files_is_refused(servelab: Servelab) -> None:
    servelab.directory.mkdir()
    (servelab.directory / "thesis.tex").touch()
    assert "thesis.tex" in servelab("up").stderr
    assert [path.name for path in servelab.directory.iterdir()] == ["thesis.tex"]


def test_a_directory_without_binaries_is_refused(servelab: Servelab, tmp_path: Path) -> None:
    refused = servelab("up", "--kubernetes-bin", str(tmp_path))
    assert (refused.returncode, "has no etcd" in refused.stderr) == (1, True)


# The operator's kill, which its Lease outlives by 15 s, is part of the story.
@pytest.mark.parametrize("name", [workloads.EMULATOR, workloads.GATEWAY])
def test_a_process_serves_again_after_it_was_killed(
    name: str, local_cluster: local.LocalCluster
) -> None:
    local_cluster.restart(name, signal.SIGKILL)
    assert name in local_cluster.running


def test_a_cluster_that_was_not_started_says_so() -> None:
    with pytest.raises(errors.InputError, match="call start"):
        _ = local.LocalCluster().gateway_url


def test_a_process_that_is_none_of_ours_cannot_be_restarted(
    control_plane: local.LocalCluster,
) -> None:
    with pytest.raises(errors.InputError, match="choose one of"):
        control_plane.restart("etcd")
    assert processes.started_at(os.getpid())
