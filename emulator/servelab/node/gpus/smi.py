"""``nvidia-smi`` of driver 570 as text: the table, the list, and queries as CSV."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from servelab.node.gpus import readings

MIB = 1024 * 1024
_RULE = "-" * 89
_COLUMNS = (
    "+-----------------------------------------+------------------------+----------------------+"
)
_HEAD = """\
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|"""
_PROCESSES = """\
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|"""


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a GPU (MIG): the GPU's name and id, and the slice's profile and id."""

    title: str
    gpu_uuid: str
    profile: str
    uuid: str


@dataclass(frozen=True, slots=True)
class View:
    """What the tool sees: a container's GPUs are numbered from 0 on, whichever it was given.

    ``slices`` are in the order of their GPUs.
    """

    gpus: Sequence[readings.Reading]
    driver: str
    cuda: str
    now_unix_s: float
    slices: Sequence[Slice] = ()


def table(view: View) -> str:
    """What the tool prints when it is called without arguments."""
    if not view.gpus:
        return "No devices were found\n"
    version = f"NVIDIA-SMI {view.driver}"
    driver = f"Driver Version: {view.driver}"
    head = f"{version:<33} {driver:<30} CUDA Version: {view.cuda:<8}"
    lines = [_stamp(view.now_unix_s), f"+{_RULE}+", f"| {head} |", _HEAD]
    for place, found in enumerate(view.gpus):
        lines += [*_gpu_lines(place, found), _COLUMNS]
    lines += [" " * 89, f"+{_RULE}+", _PROCESSES]
    rows = [_process_line(place, each) for place, each in enumerate(view.gpus) if _pid(each)]
    lines += rows or [f"|{'  No running processes found':<89}|"]
    return "\n".join([*lines, f"+{_RULE}+", ""])


def listing(view: View) -> str:
    """``nvidia-smi -L``: GPUs, and under theirs the slices."""
    found = [(each.gpu.title, each.device.uuid) for each in view.gpus]
    cut = itertools.groupby(view.slices, key=lambda each: (each.title, each.gpu_uuid))
    parts = {uuid: list(group) for (_, uuid), group in cut}
    found += [(group[0].title, uuid) for uuid, group in parts.items()]
    lines = []
    for place, (title, uuid) in enumerate(found):
        lines.append(f"GPU {place}: {title} (UUID: {uuid})\n")
        for number, part in enumerate(parts.get(uuid, ())):
            name = f"MIG {part.profile}"
            lines.append(f"  {name:<15} Device {number:>2}: (UUID: {part.uuid})\n")
    return "".join(lines)


def query(view: View, fields: Sequence[str], form: Sequence[str]) -> tuple[str, str]:
    """``--query-gpu``: CSV, or what is wrong with it. ``form`` is what ``--format`` was given."""
    for name in fields:
        if name not in FIELDS:
            return "", f'Field "{name}" is not a valid field to query.\n\n'
    bare = "nounits" in form
    rows = []
    if "noheader" not in form:
        heads = (name + (f" [{FIELDS[name][0]}]" * bool(FIELDS[name][0])) for name in fields)
        rows.append(", ".join(heads))
    for place in range(len(view.gpus)):
        cells = ((FIELDS[name][1](view, place), FIELDS[name][0]) for name in fields)
        rows.append(", ".join(c if bare or not unit else f"{c} {unit}" for c, unit in cells))
    return "".join(f"{row}\n" for row in rows), ""


def processes(view: View, fields: Sequence[str], form: Sequence[str]) -> tuple[str, str]:
    """``--query-compute-apps``."""
    known: dict[str, tuple[str, Callable[[readings.Reading], str]]] = {
        "pid": ("", lambda r: str(_pid(r))),
        "process_name": ("", lambda r: r.holder.process if r.holder else ""),
        "name": ("", lambda r: r.holder.process if r.holder else ""),
        "used_memory": ("MiB", lambda r: str(_mib(r.used_bytes))),
        "used_gpu_memory": ("MiB", lambda r: str(_mib(r.used_bytes))),
        "gpu_uuid": ("", lambda r: r.device.uuid),
        "gpu_bus_id": ("", lambda r: r.device.bus_id),
        "gpu_name": ("", lambda r: r.gpu.title),
    }
    for name in fields:
        if name not in known:
            return "", f'Field "{name}" is not a valid field to query.\n\n'
    bare, rows = "nounits" in form, []
    if "noheader" not in form:
        rows.append(", ".join(n + (f" [{known[n][0]}]" * bool(known[n][0])) for n in fields))
    for found in view.gpus:
        if _pid(found):
            cells = ((known[name][1](found), known[name][0]) for name in fields)
            rows.append(", ".join(c if bare or not unit else f"{c} {unit}" for c, unit in cells))
    return "".join(f"{row}\n" for row in rows), ""


def _gpu_lines(place: int, found: readings.Reading) -> Sequence[str]:
    busy = f"{round(found.activity.busy * 100)}%"
    memory = f"{_mib(found.used_bytes)}MiB / {_mib(found.total_bytes):>6}MiB"
    power = f"{round(found.power_w)}W / {round(found.limit_w):>4}W"
    mig = "Disabled" if _mig(found) else "N/A"
    return (
        f"| {place:>3}  {found.gpu.title:<30} On  |   {found.device.bus_id} Off |"
        f" {'0' if _ecc(found) else 'N/A':>20} |",
        f"| N/A  {found.temperature_c:>3}C    {_state(found)}{power:>24} | {memory:>22} |"
        f" {busy:>7}      Default |",
        f"|{'':41}|{'':24}| {mig:>20} |",
    )


def _process_line(place: int, found: readings.Reading) -> str:
    assert found.holder is not None
    memory = f"{_mib(found.used_bytes)}MiB"
    name = found.holder.process[:36]
    return f"|{place:>5}   N/A  N/A {found.holder.pid:>15}      C   {name:<36}{memory:>10} |"


def _pid(found: readings.Reading) -> int | None:
    return None if found.holder is None or not found.used_bytes else found.holder.pid


def _state(found: readings.Reading) -> str:
    return "P0" if found.used_bytes else "P8" if not _mig(found) else "P0"


def _mig(found: readings.Reading) -> bool:
    major, minor = found.gpu.compute_major_minor or (0, 0)
    return (major, minor) == (8, 0) or major in (9, 10)


def _ecc(found: readings.Reading) -> bool:
    return "GeForce" not in found.gpu.product_label


def _mib(size_bytes: int) -> int:
    return round(size_bytes / MIB)


def _stamp(now_unix_s: float) -> str:
    found = datetime.fromtimestamp(now_unix_s, UTC)
    return f"{found:%a %b} {found.day:>2} {found:%H:%M:%S %Y}       "


def _time(now_unix_s: float) -> str:
    milliseconds = int(now_unix_s * 1000) % 1000
    return f"{datetime.fromtimestamp(now_unix_s, UTC):%Y/%m/%d %H:%M:%S}.{milliseconds:03d}"


def _of(unit: str, tell: Callable[[readings.Reading], object]) -> tuple[str, "Teller"]:
    return unit, lambda view, place: str(tell(view.gpus[place]))


Teller = Callable[[View, int], str]

FIELDS: dict[str, tuple[str, Teller]] = {
    "index": ("", lambda view, place: str(place)),
    "count": ("", lambda view, place: str(len(view.gpus))),
    "driver_version": ("", lambda view, place: view.driver),
    "timestamp": ("", lambda view, place: _time(view.now_unix_s)),
    "name": _of("", lambda r: r.gpu.title),
    "gpu_name": _of("", lambda r: r.gpu.title),
    "uuid": _of("", lambda r: r.device.uuid),
    "gpu_uuid": _of("", lambda r: r.device.uuid),
    "serial": _of("", lambda r: r.device.serial),
    "gpu_serial": _of("", lambda r: r.device.serial),
    "pci.bus_id": _of("", lambda r: r.device.bus_id),
    "gpu_bus_id": _of("", lambda r: r.device.bus_id),
    "compute_cap": _of("", lambda r: r.gpu.compute_capability),
    "pstate": _of("", _state),
    "persistence_mode": _of("", lambda r: "Enabled"),
    "compute_mode": _of("", lambda r: "Default"),
    "mig.mode.current": _of("", lambda r: "Disabled" if _mig(r) else "[N/A]"),
    "memory.total": _of("MiB", lambda r: _mib(r.total_bytes)),
    "memory.used": _of("MiB", lambda r: _mib(r.used_bytes)),
    "memory.free": _of("MiB", lambda r: _mib(r.free_bytes)),
    "memory.reserved": _of("MiB", lambda r: _mib(r.reserved_bytes)),
    "utilization.gpu": _of("%", lambda r: round(r.activity.busy * 100)),
    "utilization.memory": _of("%", lambda r: round(r.activity.traffic * 100)),
    "temperature.gpu": _of("", lambda r: r.temperature_c),
    "power.draw": _of("W", lambda r: f"{r.power_w:.2f}"),
    "power.limit": _of("W", lambda r: f"{r.limit_w:.2f}"),
    "power.max_limit": _of("W", lambda r: f"{r.limit_w:.2f}"),
    "clocks.sm": _of("MHz", lambda r: r.sm_mhz),
    "clocks.current.sm": _of("MHz", lambda r: r.sm_mhz),
    "clocks.gr": _of("MHz", lambda r: r.sm_mhz),
    "clocks.mem": _of("MHz", lambda r: r.memory_mhz),
    "clocks.current.memory": _of("MHz", lambda r: r.memory_mhz),
}
