"""A real node in a control plane of its own: containerd, kubelet, and what they leave behind."""

import contextlib
import ipaddress
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import yaml

from modelserve import errors
from servelab.cluster import (
    binaries,
    control_plane,
    directories,
    loopback,
    processes,
    reporting,
    scratch,
)
from servelab.recording import busybox, cases, pieces, registry

NAME = "real-1"
BRIDGE = "recordbr0"
PODS = "10.245.0.0/24"
START_REAL_S = 60.0
GRACE_REAL_S = 5.0
# The cgroups of all pods of a kubelet.
CGROUP = "kubepods"


class RealNode:
    """Everything that runs; ``kubeconfig`` is its administrator's."""

    def __init__(
        self,
        directory: Path,
        parts: pieces.Pieces,
        plane: control_plane.ControlPlane,
        family: processes.Family,
        address: str,
    ) -> None:
        self._directory = directory
        self._parts = parts
        self._plane = plane
        self._family = family
        self._address = address
        self._networks = _networks()  # of others

    @property
    def kubeconfig(self) -> Path:
        return self._plane.kubeconfig

    def start_kubelet(self) -> None:
        """Start it, or start it again."""
        arguments = [
            str(self._parts.programs / "kubelet"),
            f"--config={self._directory / 'kubelet.yaml'}",
            f"--kubeconfig={self._plane.kubeconfig}",
            f"--hostname-override={NAME}",
            f"--node-ip={self._address}",
            f"--root-dir={self._directory / 'kubelet'}",
            f"--cert-dir={self._directory / 'kubelet-pki'}",
            "-v=2",
        ]
        self._family.start(processes.Command("kubelet", arguments, self._environment()))

    def stop_kubelet(self) -> None:
        """As a node that is lost: its containers run on."""
        self._family.stop(["kubelet"], GRACE_REAL_S)

    def start(self) -> None:
        """containerd with the images, the control plane, the kubelet."""
        self._write_configuration()
        program = str(self._parts.programs / "containerd")
        config = str(self._directory / "containerd.toml")
        command = processes.Command(
            "containerd", [program, "--config", config], self._environment()
        )
        child = self._family.start(command)
        child.wait_until(self._containerd_answers, START_REAL_S)
        for name, words in ((cases.IMAGE, ("sh",)), (busybox.PAUSE, busybox.PAUSE_COMMAND)):
            archive = self._directory / "image.tar"
            busybox.write(self._parts.busybox, self._parts.applets(), name, words, archive)
            self._ctr("images", "import", "--local", "--snapshotter", "native", str(archive))
        self._plane.start()
        self._plane.wait_for_service_account("default")
        self.start_kubelet()
        self._family.child("kubelet").wait_until(self._node_ready, START_REAL_S)

    def clear(self) -> None:
        """End the containers, and give back what a kubelet leaves: mounts, bridge, cgroups."""
        self.stop_kubelet()
        with contextlib.suppress(errors.SetUpError):
            for task in self._ctr("tasks", "ls", "-q").split():
                self._ctr("tasks", "kill", "--all", "--signal", "SIGKILL", task)
            for task in self._ctr("tasks", "ls", "-q").split():
                self._ctr("tasks", "delete", "--force", task)
        self._family.stop(["containerd"], GRACE_REAL_S)
        for name in sorted(_networks() - self._networks):
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
        for mount in reversed(_mounts(self._directory)):
            subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True)
        subprocess.run(["ip", "link", "delete", BRIDGE], check=False, capture_output=True)
        for place in pieces.hierarchies():
            for group in sorted((place / CGROUP).glob("**/"), reverse=True):
                with contextlib.suppress(OSError):
                    group.rmdir()

    def _containerd_answers(self) -> bool:
        try:
            self._ctr("version")
        except errors.SetUpError:
            return False
        return True

    def _node_ready(self) -> bool:
        try:
            node = self._plane.admin.get(f"/api/v1/nodes/{NAME}")
        except errors.ClusterError:
            return False
        found = node.get("status", {}).get("conditions") or ()
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in found)
        return ready and not node["spec"].get("taints")

    def _ctr(self, *words: str) -> str:
        command = [str(self._parts.programs / "ctr"), "-a", f"{self._directory}/containerd.sock"]
        done = subprocess.run(
            [*command, "-n", "k8s.io", *words],
            capture_output=True,
            text=True,
            check=False,
            env=self._environment(),
        )
        if done.returncode != 0:
            raise errors.SetUpError(f"containerd: {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def _environment(self) -> dict[str, str]:
        return {"PATH": self._parts.path, "HOME": os.environ.get("HOME", "/root")}

    def _write_configuration(self) -> None:
        place = self._directory
        (place / "cni").mkdir()
        network = {
            "cniVersion": "1.0.0",
            "name": "recording",
            "plugins": [
                {
                    "type": "bridge",
                    "bridge": BRIDGE,
                    "isGateway": True,
                    "ipMasq": False,
                    "ipam": {
                        "type": "host-local",
                        "ranges": [[{"subnet": PODS}]],
                        "dataDir": str(place / "cni-data"),
                    },
                },
                {"type": "loopback"},
            ],
        }
        (place / "cni" / "10-bridge.conflist").write_text(json.dumps(network))
        (place / "containerd.toml").write_text(_containerd(place, self._parts.plugins))
        credentials = self._plane.credentials
        document = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "failCgroupV1": False,
            "cgroupDriver": "cgroupfs",
            "enforceNodeAllocatable": [],
            "containerRuntimeEndpoint": f"unix://{place / 'containerd.sock'}",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(credentials.authority)},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "tlsCertFile": str(credentials.kubelet.certificate),
            "tlsPrivateKeyFile": str(credentials.kubelet.key),
            "address": self._address,
            "port": loopback.free_ports(1)[0],
            "readOnlyPort": 0,
            "healthzPort": 0,
            "failSwapOn": False,
            "podLogsDir": str(place / "pod-logs"),
            "imageGCHighThresholdPercent": 100,
            "evictionHard": {},
            "clusterDNS": ["10.96.0.10"],
        }
        (place / "kubelet.yaml").write_text(yaml.safe_dump(document))


def _containerd(place: Path, plugins: Path) -> str:
    # Lowering oom_score_adj is refused in many containers, and runc dies of it.
    return f"""version = 3
root = "{place}/containerd"
state = "{place}/containerd-state"
[grpc]
  address = "{place}/containerd.sock"
[ttrpc]
  address = "{place}/containerd-ttrpc.sock"
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "native"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "{busybox.PAUSE}"
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = ""
[[plugins.'io.containerd.transfer.v1.local'.unpack_config]]
  platform = "linux"
  snapshotter = "native"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.containerd]
  default_runtime_name = "runc"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = false
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["{plugins}"]
  conf_dir = "{place}/cni"
"""


def _mounts(under: Path) -> list[str]:
    lines = Path("/proc/mounts").read_text().splitlines()
    return [place for line in lines if (place := line.split()[1]).startswith(f"{under}/")]


def _networks() -> set[str]:
    """The network namespaces that have a name: those of pods, and of anybody else."""
    with contextlib.suppress(OSError):
        return {each.name for each in Path("/run/netns").iterdir()}
    return set()


def _own_address() -> str:
    """The machine's address: a kubelet refuses loopback ones."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError as failure:
            raise errors.SetUpError(
                f"a kubelet needs an address besides loopback ({failure.strerror})"
            ) from failure
        found = str(probe.getsockname()[0])
    if ipaddress.ip_address(found).is_loopback:
        raise errors.SetUpError("a kubelet needs an address besides loopback, and there is none")
    return found


@contextlib.contextmanager
def running(reporter: reporting.Reporter) -> Iterator[RealNode]:
    """A node that is ready; nothing of it is left. Raises SetUpError where there can be none."""
    pieces.require_machine()
    pieces.require_alone(CGROUP)
    address = _own_address()
    parts = pieces.find(reporter)
    found = binaries.find(reporter)
    with scratch.directory("servelab-record") as place:
        family = processes.Family(directories.private(place / "logs"))
        plane = control_plane.ControlPlane(
            found, family, directories.private(place / "run"), place / "etcd", (address,)
        )
        node = RealNode(place, parts, plane, family, address)
        archive = place / "registry.tar"
        # Another than the node's: what a kubelet has pulled once it pulls again, under any name.
        busybox.write(parts.busybox, parts.applets(), cases.IMAGE, ("sh", "-i"), archive)
        reporter.say("starting Kubernetes, containerd and a kubelet")
        try:
            with registry.serving(archive):
                node.start()
                yield node
        finally:
            node.clear()
            plane.stop(keep=False)
            family.close()
