"""What the models of a run share, and what each of them costs."""

from collections.abc import Callable
from dataclasses import dataclass, field

from modelserve.decide import coldstart
from servelab.engine import assembly
from servelab.sim.agenda import Agenda
from servelab.sim.nodes import Nodes
from servelab.sim.starting import Links

Told = Callable[[float], None]


@dataclass(slots=True)
class Place:
    """What all models of a run share."""

    agenda: Agenda
    nodes: Nodes
    links: Links
    seed: int
    step_jitter: float = assembly.STEP_JITTER
    gateways: int = 1
    freed: list[Told] = field(default_factory=list)  # who wants to know of free GPUs


@dataclass(slots=True)
class Ledger:
    """What a model's replicas cost. GPU seconds from the bind to the end of each."""

    gpu_s: float = 0.0
    idle_gpu_s: float = 0.0
    cold_starts: int = 0
    peak: int = 0
    writes: int = 0
    counts: list[tuple[float, int]] = field(default_factory=list)  # asked for, from then on
    ready: list[tuple[float, int]] = field(default_factory=list)
    cold_start_s: list[float] = field(default_factory=list)
    measured: list[coldstart.ColdStart] = field(default_factory=list)  # the same, by part
