"""The parts of a real node: kubelet and containerd are built once, the rest are Debian's packages.

Nothing is installed: packages are unpacked into our cache.
"""

import contextlib
import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from modelserve import errors
from servelab.cluster import directories, gobuild, releases, reporting, toolchain

SOURCES = Path(__file__).parent / "build"
CONTAINERD = "v2.4.2"
CONTAINERD_PACKAGE = "github.com/containerd/containerd/v2/cmd"
CONTAINERD_TAGS = "no_btrfs no_zfs no_devmapper netgo osusergo"
CONTAINERD_PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr")
PACKAGES = ("runc", "containernetworking-plugins", "busybox-static")
CGROUPS = Path("/sys/fs/cgroup")
NEEDED = ("ip", "apt-get", "dpkg-deb")


@dataclasses.dataclass(frozen=True, slots=True)
class Pieces:
    """Where everything stands."""

    programs: Path  # kubelet, containerd, its shim, ctr
    system: Path  # unpacked packages

    @property
    def path(self) -> str:
        """What containerd and kubelet need as PATH."""
        own = [str(self.programs), *(str(self.system / each) for each in ("usr/sbin", "usr/bin"))]
        return ":".join([*own, os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")])

    @property
    def plugins(self) -> Path:
        """Of the container network."""
        return self.system / "usr/lib/cni"

    @property
    def busybox(self) -> Path:
        return self.system / "bin/busybox"

    def applets(self) -> Sequence[str]:
        """What busybox can be called as."""
        done = subprocess.run([self.busybox, "--list"], capture_output=True, text=True, check=True)
        return done.stdout.split()


def require_machine() -> None:
    """SetUpError where a kubelet cannot be started, with the reason."""
    if sys.platform != "linux":
        raise errors.SetUpError("a kubelet runs on Linux only: record on a Linux machine")
    if os.geteuid() != 0:
        raise errors.SetUpError("a kubelet needs root: run this as root, on a machine to spare")
    if not os.access("/sys/fs/cgroup", os.W_OK) or not any(Path("/sys/fs/cgroup").iterdir()):
        raise errors.SetUpError("a kubelet needs cgroups, and /sys/fs/cgroup cannot be written")
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        raise errors.SetUpError(
            f"{missing[0]} is not here: a recording needs Debian (or Ubuntu) with iproute2"
        )


def hierarchies(cgroups: Path = CGROUPS) -> list[Path]:
    """One of all controllers (version 2), or one of each."""
    if (cgroups / "cgroup.controllers").exists():
        return [cgroups]
    return [place for place in cgroups.iterdir() if place.is_dir() and place.name != "unified"]


def require_alone(group: str, cgroups: Path = CGROUPS) -> None:
    """Raises SetUpError where another kubelet has pods: one ends those that it does not know."""
    for place in hierarchies(cgroups):
        for found in (place / group).glob("**/cgroup.procs"):
            with contextlib.suppress(OSError):
                if found.read_text().strip():
                    raise errors.SetUpError(
                        "a kubelet runs pods on this machine already, and would end those that are "
                        "recorded, as they would end its own: record where there is none"
                    )


def find(reporter: reporting.Reporter) -> Pieces:
    """Build and unpack what is not in the cache yet. Raises SetUpError."""
    home = directories.private(directories.cache() / "node" / releases.KUBERNETES)
    found = Pieces(home / "bin", home / "system")
    wanted = ["kubelet", *CONTAINERD_PROGRAMS]
    missing = [name for name in wanted if not (found.programs / name).exists()]
    if missing:
        tools = toolchain.find() or toolchain.install(reporter)
        for name in missing:
            reporter.say(f"building {name} from source, some minutes, once")
            _build(name, found.programs, tools)
    if not found.busybox.exists():
        _unpack(home, found.system, reporter)
    return found


def _build(name: str, into: Path, tools: toolchain.Toolchain) -> None:
    partial = directories.private(into) / f"{name}.partial"
    if name == "kubelet":
        major, minor, _ = releases.KUBERNETES.removeprefix("v").split(".")
        flags = gobuild.KUBERNETES_LDFLAGS.format(
            version=releases.KUBERNETES, major=major, minor=minor
        )
        module, package = "kubelet", "k8s.io/kubernetes/cmd/kubelet"
        what = ["-ldflags", flags, "-o", str(partial), package]
    else:
        module, package = "containerd", f"{CONTAINERD_PACKAGE}/{name}"
        what = ["-tags", CONTAINERD_TAGS, "-ldflags", "-s -w", "-o", str(partial), package]
    _run(
        [str(tools.go), "build", "-trimpath", *what],
        SOURCES / module,
        f"building {name}",
        tools.environment(os.environ),
    )
    partial.rename(into / name)


def _unpack(home: Path, into: Path, reporter: reporting.Reporter) -> None:
    reporter.say(f"fetching {', '.join(PACKAGES)} with apt")
    fetched = directories.private(home / "packages")
    _run(["apt-get", "download", *PACKAGES], fetched, "fetching packages (try `apt-get update`)")
    for package in sorted(fetched.glob("*.deb")):
        _run(["dpkg-deb", "-x", package, into], fetched, f"unpacking {package.name}")
    shutil.rmtree(fetched)


def _run(
    command: Sequence[str | Path], where: Path, what: str, environment: dict[str, str] | None = None
) -> None:
    done = subprocess.run(
        command,
        cwd=where,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise errors.SetUpError(f"{what} failed: {last}")
