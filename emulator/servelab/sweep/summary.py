"""Points of a sweep over their seeds, and the front of cost and latency among them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from servelab.report import front as fronts

# Fewer served requests than this, and a p95 of those served says nothing.
SERVED = 0.95

Figures = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Setup:
    """One combination under one policy; figures are means over its seeds, NaN where unknown."""

    values: Mapping[str, Any]
    policy: str
    seeds: int
    gpu_hours: float
    cost: float
    ttft_p95_s: float
    slo_attainment: float
    served: float

    @property
    def price(self) -> float:
        """What it is compared by: its cost, or GPU hours where they have no price, or 0."""
        return self.cost if self.cost > 0 else self.gpu_hours

    @property
    def wait_s(self) -> float:
        """p95 of the time to the first token of all requests; infinite if too many got none."""
        return self.ttft_p95_s if self.served >= SERVED else math.inf

    def to_json(self) -> dict[str, Any]:
        """Numbers to six digits after the point."""
        figures = {
            "gpu_hours": self.gpu_hours,
            "cost": self.cost,
            "ttft_p95_s": self.ttft_p95_s,
            "slo_attainment": self.slo_attainment,
            "served": self.served,
        }
        plain = {
            name: None if value != value else round(value, 6) for name, value in figures.items()
        }
        return {"set": dict(self.values), "policy": self.policy, "seeds": self.seeds, **plain}


def setup(values: Mapping[str, Any], policy: str, runs: Sequence[Figures]) -> Setup:
    """The runs of one combination, one for each seed."""

    def mean(name: str) -> float:
        known = [run[name] for run in runs if run[name] is not None]
        return sum(known) / len(known) if len(known) == len(runs) else math.nan

    asked = sum(run["requests"] for run in runs)
    return Setup(
        values=values,
        policy=policy,
        seeds=len(runs),
        gpu_hours=mean("gpu_hours"),
        cost=mean("cost"),
        ttft_p95_s=mean("ttft_p95_s"),
        slo_attainment=mean("slo_attainment"),
        served=sum(run["completed"] for run in runs) / asked if asked else math.nan,
    )


def front(setups: Sequence[Setup]) -> list[Setup]:
    """Those that no other beats in both cost and wait, the cheapest first."""
    return [setups[n] for n in fronts.front([(each.price, each.wait_s) for each in setups])]
