"""What a running cluster writes down about itself, for other commands and for the next start."""

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from servelab.cluster import processes

FILE = "state.json"


@dataclasses.dataclass(frozen=True, slots=True)
class Process:
    """A process that can be told from a later one with the same id."""

    pid: int
    started_at: str

    @classmethod
    def of(cls, pid: int) -> "Process":
        """The process that has ``pid`` now."""
        return cls(pid, processes.started_at(pid) or "")

    def alive(self) -> bool:
        """Whether it still runs."""
        return self.started_at != "" and processes.started_at(self.pid) == self.started_at


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """One running cluster."""

    name: str
    supervisor: Process
    children: Mapping[str, Process]
    kubeconfig: str
    urls: Mapping[str, str]
    time_scale: float
    kubernetes: str
    keep: bool
    ready: bool
    restarts: Mapping[str, int] = dataclasses.field(default_factory=dict)  # of those that ended

    def alive(self) -> bool:
        """Whether the process that holds it together still runs."""
        return self.supervisor.alive()

    def write(self, directory: Path) -> None:
        """Put it into the cluster's directory."""
        temporary = directory / f"{FILE}.{os.getpid()}.partial"
        temporary.touch(mode=0o600)
        temporary.write_text(json.dumps(dataclasses.asdict(self), indent=2) + "\n")
        temporary.replace(directory / FILE)


def read(directory: Path) -> Record | None:
    """The record in ``directory``; None if there is none, or none that can be read."""
    try:
        document: dict[str, Any] = json.loads((directory / FILE).read_text())
        document["supervisor"] = Process(**document["supervisor"])
        document["children"] = {n: Process(**p) for n, p in document["children"].items()}
        return Record(**document)
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, KeyError):
        return None


def clear_stale(directory: Path) -> bool:
    """Kill what a crashed cluster left running; True if it left anything."""
    left = read(directory)
    if left is None or left.alive():
        return False
    for child in left.children.values():
        if child.alive():
            processes.kill_group(child.pid)
    (directory / FILE).unlink(missing_ok=True)
    return True
