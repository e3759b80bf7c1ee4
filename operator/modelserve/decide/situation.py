"""What a policy sees of one model at one instant, and what it recommends."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from modelserve.decide import demand, forecast, observation, record, supply

# Rounding up must not turn 3.0000000001 into 4.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Situation:
    """Demand, supply and estimates of one model. ``active`` as long as spare ones are to stay."""

    parameters: observation.Parameters
    demand: demand.Demand
    supply: supply.Supply
    arrival_rate_per_s: float
    service_s: float
    current: int
    active: bool
    now_s: float

    @property
    def replica_rate_per_s(self) -> float:
        """Requests per second that one busy replica finishes."""
        return self.parameters.slots / self.service_s

    @property
    def kept(self) -> int:
        """Supply that the count pays for; a rollout's surge is not taken for it."""
        return min(self.supply.committed, self.current)

    @property
    def spare(self) -> int:
        """Spare replicas to keep."""
        return self.parameters.buffer_replicas if self.active else 0

    def fluid(self, ordered: int = 0) -> forecast.Fluid:
        """The forecast's view, with ``ordered`` more replicas from now on."""
        starting_s = [at_s - self.now_s for at_s in self.supply.starting_s]
        if ordered > 0:
            starting_s = sorted([*starting_s, *[self.parameters.cold_start_s] * ordered])
        return forecast.Fluid(
            self.arrival_rate_per_s,
            self.replica_rate_per_s,
            self.parameters.slots,
            self.supply.ready,
            starting_s,
        )


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What a policy asks for: a count of replicas that serve, why, and the numbers used."""

    count: int
    reason: record.Reason
    why: str
    inputs: Mapping[str, float]


def ceil(value: float) -> int:
    """Round up, but not for an error of rounding."""
    return math.ceil(value - ROUNDING)
