"""Files that a container has: a few of /etc, /proc and /sys, its mounts, and what it was given."""

from collections.abc import Mapping

from servelab.node.shell.inside import Inside

KIB = 1024
_DIRECTORIES = (
    *("/bin", "/boot", "/dev/pts", "/dev/shm", "/etc", "/home", "/lib", "/lib64", "/media"),
    *("/mnt", "/opt", "/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/tmp"),
    *("/usr/bin", "/usr/lib", "/usr/local/bin", "/usr/share", "/var/log", "/var/tmp"),
)
_DEVICES = ("/dev/full", "/dev/null", "/dev/random", "/dev/tty", "/dev/urandom", "/dev/zero")
_OS_RELEASE = """\
PRETTY_NAME="Ubuntu 22.04.5 LTS"
NAME="Ubuntu"
VERSION_ID="22.04"
VERSION="22.04.5 LTS (Jammy Jellyfish)"
VERSION_CODENAME=jammy
ID=ubuntu
ID_LIKE=debian
"""


def of(inside: Inside) -> Mapping[str, str]:
    """Their contents by path."""
    files = {
        "/etc/hostname": f"{inside.hostname}\n",
        "/etc/hosts": _hosts(inside),
        "/etc/os-release": _OS_RELEASE,
        "/etc/resolv.conf": _resolv(inside.namespace),
        "/proc/cpuinfo": _cpuinfo(inside.cpus),
        "/proc/loadavg": f"{_load(inside)} 1/512 {len(inside.processes) + 1}\n",
        "/proc/meminfo": _meminfo(inside),
        "/proc/uptime": _uptime(inside),
        "/proc/version": f"Linux version {inside.kernel} (emulated)\n",
        **dict.fromkeys(_DEVICES, ""),
        **_processes(inside),
        **inside.files,
    }
    if inside.nvidia is not None:
        files["/proc/driver/nvidia/version"] = (
            f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {inside.nvidia.driver}\n"
        )
        for found in inside.nvidia.gpus:
            files[f"/dev/nvidia{found.device.index}"] = ""
        files |= dict.fromkeys(("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"), "")
    return files


def directories(inside: Inside, files: Mapping[str, str]) -> frozenset[str]:
    """All directories there are."""
    found = {"/"}
    for path in (*_DIRECTORIES, *inside.mounts, *(path.rpartition("/")[0] for path in files)):
        while path:
            found.add(path)
            path = path.rpartition("/")[0]
    return frozenset(found)


def _hosts(inside: Inside) -> str:
    return (
        "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost "
        "ip6-loopback\nfe00::\tip6-localnet\nfe00::\tip6-mcastprefix\nfe00::1\tip6-allnodes\n"
        f"fe00::2\tip6-allrouters\n{inside.pod_ip}\t{inside.hostname}\n"
    )


def _resolv(namespace: str) -> str:
    domain = "cluster.local"
    return (
        f"search {namespace}.svc.{domain} svc.{domain} {domain}\n"
        "nameserver 10.96.0.10\noptions ndots:5\n"
    )


def _cpuinfo(cpus: int) -> str:
    return "".join(
        f"processor\t: {number}\nvendor_id\t: GenuineIntel\nmodel name\t: Emulated CPU\n"
        f"cpu cores\t: {cpus}\n\n"
        for number in range(cpus)
    )


def _meminfo(inside: Inside) -> str:
    free = max(0, inside.memory_bytes - inside.memory_used_bytes)
    rows = {
        "MemTotal": inside.memory_bytes,
        "MemFree": free,
        "MemAvailable": free,
        "Buffers": 0,
        "Cached": 0,
        "SwapTotal": 0,
        "SwapFree": 0,
    }
    return "".join(f"{name + ':':<16}{size // KIB:>8} kB\n" for name, size in rows.items())


def _uptime(inside: Inside) -> str:
    up_s = inside.now_unix_s - inside.booted_unix_s
    return f"{up_s:.2f} {up_s * inside.cpus:.2f}\n"


def _load(inside: Inside) -> str:
    return "0.50 0.50 0.50"


def _processes(inside: Inside) -> Mapping[str, str]:
    files = {}
    for each in inside.processes:
        files[f"/proc/{each.pid}/cmdline"] = each.command.replace(" ", "\0") + "\0"
        files[f"/proc/{each.pid}/comm"] = each.command.split()[0].rpartition("/")[2][:15] + "\n"
    first = inside.processes[0].pid if inside.processes else 1
    files[f"/proc/{first}/environ"] = "".join(f"{k}={v}\0" for k, v in inside.env.items())
    return files
