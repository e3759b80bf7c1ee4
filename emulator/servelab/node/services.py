"""What the pods of one emulator process share."""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from modelserve import ports
from servelab.node.machines.addresses import PodAddresses
from servelab.node.pods.writes import Statuses
from servelab.node.ports import Engines


@dataclass(slots=True)
class Services:
    """``unix_s`` never goes back; ``late`` hears of delays, and whether a start's phase was late.

    ``may_write`` says of a node by name whether it is ours to write for.
    """

    cluster: ports.Cluster
    engines: Engines
    addresses: PodAddresses
    unix_s: Callable[[], float]
    sleep_real: Callable[[float], Awaitable[None]]
    late: Callable[[float, bool], None] = lambda real_s, phase: None
    may_write: Callable[[str], bool] = lambda node: True
    rng: random.Random = field(default_factory=random.Random)
    writes: Statuses = field(default_factory=Statuses)
