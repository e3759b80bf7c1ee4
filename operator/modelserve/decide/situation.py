"""What a policy sees of one model at one instant, and what it recommends."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from modelserve.decide import demand, forecast, observation, record, supply
from modelserve.decide.verdict import Words

# Rounding up must not turn 3.0000000001 into 4.
ROUNDING = 1e-9


class Situation(NamedTuple):
    """Demand, supply and estimates of one model. ``active`` as long as spare ones are to stay.

    ``settled``: no backlog for as long as a request takes, so what is under way is none of one.
    ``piled``: what is open grew while replicas were starting, and has been a backlog until less
    than a request takes ago, so its size is no burst's.
    """

    parameters: observation.Parameters
    demand: demand.Demand
    supply: supply.Supply
    arrival_rate_per_s: float
    window_s: float  # over which that was measured
    expected_rate_per_s: float  # of arrivals, on average until a replica ordered now could help
    service_s: float
    replica_rate_per_s: float  # requests per second that one busy replica finishes
    current: int
    backlog: float  # requests beyond the slots of ready replicas, wherever they queue
    kept: int  # supply that the count pays for; a rollout's surge is not taken for it
    active: bool
    settled: bool
    piled: bool
    now_s: float

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
            self.expected_rate_per_s,
            self.replica_rate_per_s,
            self.parameters.slots,
            self.supply.ready,
            starting_s,
        )


class Recommendation(NamedTuple):
    """What a policy asks for: a count of replicas that serve, why, and the numbers used.

    ``lasting`` is what of it the down window is to hold on to.
    """

    replicas: int
    lasting: int
    reason: record.Reason
    why: Words
    inputs: Mapping[str, float]


def ceil(value: float) -> int:
    """Round up, but not for an error of rounding."""
    return math.ceil(value - ROUNDING)
