"""What a process inside a container sees of it and of its node."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from servelab.node.gpus import smi


@dataclass(frozen=True, slots=True)
class Process:
    """A process of the container. ``cpu_s`` is the processor time it took so far."""

    pid: int
    parent: int
    command: str
    started_unix_s: float
    cpu_s: float
    resident_bytes: int
    virtual_bytes: int


@dataclass(frozen=True, slots=True)
class Inside:
    """One container at one moment. ``nvidia`` is None where there is no NVIDIA driver."""

    hostname: str
    pod_ip: str
    namespace: str
    env: Mapping[str, str]
    processes: tuple[Process, ...]
    cpus: int
    memory_bytes: int
    memory_used_bytes: int
    booted_unix_s: float
    now_unix_s: float
    kernel: str
    nvidia: smi.View | None = None
    mounts: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)  # beside those that all have


@dataclass(frozen=True, slots=True)
class Result:
    """What a command wrote, its exit code, and the real seconds it slept."""

    out: str = ""
    err: str = ""
    code: int = 0
    pause_s: float = 0.0
