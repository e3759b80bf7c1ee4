"""What a node as a whole suffers at a moment, and what its status shows of that."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelserve.api.faults import FaultType as Type
from servelab.node.faults import fault, words

_DEVICES = ("nvidia.com/", "amd.com/")


@dataclass(frozen=True, slots=True)
class Ailment:
    """``cut_off``: its kubelet does not reach the API server; ``gpus_gone`` is a share of them."""

    cut_off: bool = False
    gpus_gone: float = 0.0


WELL = Ailment()


def of(faults: fault.Faults, gpus: int, now_s: float) -> Ailment:
    """The one decision about a node with that many GPUs."""
    if not faults.entries:
        return WELL
    silent = (faults.holding(kind, now_s) for kind in (Type.NODE_LOST, Type.LEASE_LAPSE))
    gone = 0
    vanished = faults.holding(Type.GPUS_VANISH, now_s)
    if vanished is not None:
        gone += vanished.said.gpus or gpus
    broken = faults.holding(Type.XID, now_s)
    if broken is not None and words.breaks_gpu(broken.xid):
        gone += broken.said.gpus or 1
    return Ailment(any(each is not None for each in silent), min(1.0, gone / max(1, gpus)))


def allocatable(status: Mapping[str, Any], ailment: Ailment) -> dict[str, Any]:
    """The status with what the device plugin calls unhealthy taken from ``allocatable``."""
    if not ailment.gpus_gone:
        return dict(status)
    left = {
        name: str(round(int(amount) * (1 - ailment.gpus_gone)))
        for name, amount in status["allocatable"].items()
        if name.startswith(_DEVICES)
    }
    return {**status, "allocatable": {**status["allocatable"], **left}}
