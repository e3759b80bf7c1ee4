"""``nvidia-smi`` of driver 570 as text: the table, the list, and queries as CSV."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from servelab.node.gpus import migtable, readings

MIB = 1024 * 1024
_RULE = "-" * 89
_UNKNOWN, _FORBIDDEN = "[N/A]", "[Insufficient Permissions]"
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
class View:
    """What the tool sees: a container's GPUs are numbered from 0 on, whichever it was given.

    ``slices`` are in the order of their GPUs, of which it then sees little else.
    """

    gpus: Sequence[readings.Reading]
    driver: str
    cuda: str
    now_unix_s: float
    slices: Sequence[migtable.Slice] = ()

    @property
    def places(self) -> Mapping[str, int]:
        """The number of each GPU by its id."""
        return {found.device.uuid: place for place, found in enumerate(self.gpus)}

    def cut(self, found: readings.Reading) -> Sequence[migtable.Slice]:
        """The slices of one of the GPUs."""
        return [each for each in self.slices if each.gpu_uuid == found.device.uuid]


def table(view: View) -> str:
    """What the tool prints when it is called without arguments."""
    if not view.gpus:
        return "No devices were found\n"
    version = f"NVIDIA-SMI {view.driver}"
    driver = f"Driver Version: {view.driver}"
    head = f"{version:<33} {driver:<30} CUDA Version: {view.cuda:<8}"
    lines = [_stamp(view.now_unix_s), f"+{_RULE}+", f"| {head} |", _HEAD]
    for place, found in enumerate(view.gpus):
        lines += [*_gpu_lines(place, found, cut=bool(view.cut(found))), _COLUMNS]
    lines += migtable.lines(view.slices, view.places)
    lines += [" " * 89, f"+{_RULE}+", _PROCESSES]
    rows = [_process_line(place, each) for place, each in enumerate(view.gpus) if _pid(each)]
    rows += migtable.processes(view.slices, view.places)
    lines += rows or [f"|{'  No running processes found':<89}|"]
    return "\n".join([*lines, f"+{_RULE}+", ""])


def listing(view: View) -> str:
    """``nvidia-smi -L``: GPUs, and under theirs the slices."""
    lines = []
    for place, found in enumerate(view.gpus):
        lines.append(f"GPU {place}: {found.gpu.title} (UUID: {found.device.uuid})")
        lines += migtable.listing(view.cut(found))
    return "".join(f"{line}\n" for line in lines)


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
        rows.append(_row(cells, bare=bare))
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
            rows.append(_row(cells, bare=bare))
    return "".join(f"{row}\n" for row in rows), ""


def _row(cells: Iterable[tuple[str, str]], *, bare: bool) -> str:
    """Values with their units; what is not told has none."""
    return ", ".join(
        text if bare or not unit or text.startswith("[") else f"{text} {unit}"
        for text, unit in cells
    )


def _gpu_lines(place: int, found: readings.Reading, *, cut: bool) -> Sequence[str]:
    busy = f"{round(found.activity.busy * 100)}%"
    memory = f"{_mib(found.used_bytes)}MiB / {_mib(found.total_bytes):>6}MiB"
    power = f"{round(found.power_w)}W / {round(found.limit_w):>4}W"
    ecc, mig = "0" if _ecc(found) else "N/A", "Disabled" if _mig(found) else "N/A"
    if cut:
        # Who has a slice sees nothing of the rest.
        busy, memory, ecc, mig = "N/A", "N/A", "On", "Enabled"
    return (
        f"| {place:>3}  {found.gpu.title:<30} On  |   {found.device.bus_id} Off | {ecc:>20} |",
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


def _of_whole(
    unit: str, tell: Callable[[readings.Reading], object], hidden: str = _FORBIDDEN
) -> tuple[str, "Teller"]:
    """What is not told where the GPU is cut."""

    def said(view: View, place: int) -> str:
        found = view.gpus[place]
        return hidden if view.cut(found) else str(tell(found))

    return unit, said


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
    "mig.mode.current": _of_whole("", lambda r: "Disabled" if _mig(r) else _UNKNOWN, "Enabled"),
    "memory.total": _of_whole("MiB", lambda r: _mib(r.total_bytes)),
    "memory.used": _of_whole("MiB", lambda r: _mib(r.used_bytes)),
    "memory.free": _of_whole("MiB", lambda r: _mib(r.free_bytes)),
    "memory.reserved": _of_whole("MiB", lambda r: _mib(r.reserved_bytes)),
    "utilization.gpu": _of_whole("%", lambda r: round(r.activity.busy * 100), _UNKNOWN),
    "utilization.memory": _of_whole("%", lambda r: round(r.activity.traffic * 100), _UNKNOWN),
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
