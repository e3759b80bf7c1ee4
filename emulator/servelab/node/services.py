"""What the nodes of one emulator process share, and the pods on them."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from modelserve import ports
from servelab.node import tasks as background
from servelab.node.machines.addresses import PodAddresses
from servelab.node.pods.writes import Events, Statuses
from servelab.node.ports import Engines


@dataclass(slots=True)
class Services:
    """``late`` hears of delays in real seconds, and whether a start's phase was late."""

    cluster: ports.Cluster
    clock: ports.Clock
    engines: Engines
    addresses: PodAddresses
    late: Callable[[float, bool], None] = lambda real_s, phase: None
    rng: random.Random = field(default_factory=random.Random)
    tasks: background.Tasks = field(default_factory=background.Tasks)
    writes: Statuses = field(default_factory=Statuses)
    events: Events = field(init=False)
    _began_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.events = Events(self.writes)
        self._began_s = self.clock.wall_s() - self.clock.real_s()

    def unix_s(self) -> float:
        """Unix seconds that never go back: the wall clock at the start, and monotonic from then."""
        return self._began_s + self.clock.real_s()

    def now_s(self) -> float:
        """The same in emulated seconds, as transfers count."""
        return self.unix_s() * self.clock.scale
