"""What the models of a run share, and what each of them costs."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

from modelserve.decide import coldstart
from servelab.engine import assembly
from servelab.sim.agenda import Agenda, Turn
from servelab.sim.moves import Moves
from servelab.sim.nodes import Node, Nodes
from servelab.sim.pools import Pools
from servelab.timing import caches

Told = Callable[[float], None]


@dataclass(slots=True)
class Place:
    """What all models of a run share."""

    agenda: Agenda
    nodes: Nodes
    pools: Pools
    moves: Moves
    seed: int
    step_jitter: float = assembly.STEP_JITTER
    gateways: int = 1

    def sweep(self, node: Node) -> None:
        """An image has come: the kubelet's next round may find the disk too full."""
        if not node.sweeping:
            node.sweeping = True
            at_s = (self.agenda.now_s // caches.GC_EVERY_S + 1) * caches.GC_EVERY_S
            self.agenda.at(at_s, Turn.LIFE, functools.partial(self._sweep, node))

    def _sweep(self, node: Node, now_s: float) -> None:
        node.sweeping = False
        if node in self.nodes:
            swept = node.images.collect([each.image for each in node.tenants.values()], now_s)
            if swept.gone:
                self.nodes.changed()
            if swept.failed:
                self.sweep(node)


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
