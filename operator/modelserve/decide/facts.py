"""What a status is made of: what was seen, what was decided, and what stands around."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from modelserve.api import spec as specs
from modelserve.api import timestamps
from modelserve.decide import coldstart, demand, observation, record


@dataclass(frozen=True, slots=True)
class Block:
    """Why the children cannot be brought to what the spec asks for.

    ``scales``: a Deployment of ours is there, as it was, and its count still follows demand.
    """

    reason: str
    message: str
    scales: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Of one model. ``now_wall_s`` is Unix time, ``now_s`` emulated."""

    spec: specs.ModelServeSpec
    generation: int
    seen: observation.Observation
    demand: demand.Demand
    decision: record.Decision
    predicted: coldstart.ColdStart
    pool_nodes: int
    gpu_title: str
    phases: Mapping[str, str]  # by UID of a starting replica: the phase it is in
    now_s: float
    now_wall_s: float
    scale: float
    rolling_out: bool = False
    blocked: Block | None = None
    troubles: Mapping[str, str] = field(default_factory=dict)  # by UID: why it does not run
    failed_start: str = ""  # the last start that failed, if none has succeeded since
    pods_refused: str = ""  # why the API server takes no pods of the Deployment
    slots: int = 1
    served_name_holder: str = ""  # an older ModelServe that answers to the same name
    foreign_managers: tuple[str, ...] = ()
    silent_gateways: tuple[str, ...] = ()  # of each live one that tells nothing, why

    def wall(self, at_s: float) -> str:
        """An emulated instant as a stamp."""
        return timestamps.format_time(self.now_wall_s + (at_s - self.now_s) / self.scale)
