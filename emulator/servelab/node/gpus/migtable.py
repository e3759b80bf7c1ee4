"""What ``nvidia-smi`` shows of slices of GPUs (MIG): their part of the table, and their ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from modelserve.catalog import gpus, mig
from servelab.node.gpus import slices

# A GPU's window for the processor is the next power of two of its memory; a slice has its part.
_MIB_A_GIB = 1024
_RULE = "-" * 89
_LINE = (
    "+------------------+----------------------------------+-----------+-----------------------+"
)
_HEAD = f"""\
+{_RULE}+
| MIG devices:                                                                            |
{_LINE}
| GPU  GI  CI  MIG |                     Memory-Usage |        Vol|        Shared         |
|      ID  ID  Dev |                       BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |
|                  |                                  |        ECC|                       |
|==================+==================================+===========+=======================|"""


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a GPU: whose, its profile and ids, what it has, and who uses how much of it.

    ``facts`` are those of feature discovery (``slices.attributes``).
    """

    title: str
    gpu_uuid: str
    profile: str
    uuid: str
    instance: int = 0
    facts: Mapping[str, int] = field(default_factory=dict)
    window_mib: int = 0
    used_mib: int = 0
    pid: int | None = None
    process: str = ""


def of_gpu(gpu: gpus.Gpu, gpu_uuid: str, profile: mig.Profile, uuid: str, number: int) -> Slice:
    """A slice without any use; ``number`` is its place among those of its kind on the GPU."""
    whole_mib = 1
    while whole_mib < gpu.driver_memory_mib:
        whole_mib *= 2
    part = profile.memory_share
    return Slice(
        gpu.title,
        gpu_uuid,
        profile.name,
        uuid,
        _instance(profile, number),
        slices.attributes(profile, gpu),
        round(whole_mib * part) - (part < 1),
    )


def _instance(profile: mig.Profile, number: int) -> int:
    """The driver counts them by size: 0 is the whole, then halves, quarters, eighths."""
    return mig.MEMORY_SLICES // profile.memory - 1 + number


def lines(cut: Sequence[Slice], places: Mapping[str, int]) -> list[str]:
    """The table's part; ``places`` are the numbers of their GPUs. Empty without slices."""
    if not cut:
        return []
    found = ["", *_HEAD.splitlines()]
    for place, number, each in _numbered(cut, places):
        facts = each.facts
        engines = (
            f" {facts['engines.copy']:>2} {facts['engines.encoder']:>3}"
            f" {facts['engines.decoder']:>4} {facts['engines.ofa']:>4} {facts['engines.jpeg']:>4} "
        )
        memory = f" {each.used_mib:>15}MiB / {facts['memory']:>5}MiB"
        window = f" {0:>17}MiB / {each.window_mib:>5}MiB"
        found += [
            f"| {place:>2} {each.instance:>4} {0:>3} {number:>3}  |{memory:<34}|"
            f"{facts['multiprocessors']:>3} {0:>6} |{engines}|",
            f"|{'':18}|{window:<34}|{'':11}|{'':23}|",
            _LINE,
        ]
    return found


def processes(cut: Sequence[Slice], places: Mapping[str, int]) -> list[str]:
    """A line for each slice that a process uses."""
    found = []
    for place, _, each in _numbered(cut, places):
        if each.pid is not None:
            memory, name = f"{each.used_mib}MiB", each.process[:36]
            found.append(
                f"|{place:>5}{each.instance:>5}{0:>5} {each.pid:>16}      C   {name:<36}"
                f"{memory:>10} |"
            )
    return found


def listing(cut: Sequence[Slice]) -> list[str]:
    """The lines of ``nvidia-smi -L`` under one GPU."""
    return [
        f"  {f'MIG {each.profile}':<15} Device {number:>2}: (UUID: {each.uuid})"
        for number, each in enumerate(cut)
    ]


def _numbered(cut: Sequence[Slice], places: Mapping[str, int]) -> Sequence[tuple[int, int, Slice]]:
    """GPU and number on it of each slice."""
    found, counts = [], dict.fromkeys(places, 0)
    for each in cut:
        found.append((places[each.gpu_uuid], counts[each.gpu_uuid], each))
        counts[each.gpu_uuid] += 1
    return found
