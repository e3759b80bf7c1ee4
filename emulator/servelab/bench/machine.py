"""Where a bench ran, and what processes use there."""

import contextlib
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modelserve import errors
from servelab.cluster import releases
from servelab.engine.core import stepping


def describe() -> dict[str, Any]:
    """CPU, cores and memory of this machine."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {"cpu": _cpu(), "cores": os.cpu_count() or 1, "memory_gib": round(pages / 2**30)}


def versions() -> dict[str, str]:
    """Of what the figures depend on."""
    return {
        "python": platform.python_version(),
        "engine": "compiled" if stepping.__file__.endswith(".so") else "plain Python",
        "kubernetes": releases.KUBERNETES.removeprefix("v"),
    }


def _cpu() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor seconds so far and resident bytes of one process."""

    cpu_s: float
    rss_bytes: int


def usage(pid: int) -> Usage:
    """Read both. Raises SetUpError where there is no /proc, or no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError as error:
        raise errors.SetUpError(
            f"what process {pid} uses cannot be read from /proc: this bench needs Linux, and the "
            "process alive"
        ) from error
    ticks = int(fields[11]) + int(fields[12])
    return Usage(ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE"))


def family(pid: int) -> Sequence[int]:
    """The process and all that came from it."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += map(int, task.read_text().split())
    return found
