"""What a scenario says: GPU pools, models with their traffic, the objective, and the time around.

The parts that a live cluster has too (a ModelServe's spec, a GPUPool's) are the API's own models.
"""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from modelserve.api import pool
from modelserve.api.schema import Name, Node
from modelserve.api.spec import ModelServeSpec
from servelab.engine import assembly

Positive = Annotated[float, Field(gt=0, le=1e7, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=1e7, allow_inf_nan=False)]
Tokens = Annotated[int, Field(ge=1, le=100_000_000)]


class Part(Node):
    """Base of a scenario's own parts: what they do not know is refused."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="forbid"
    )


class Lengths(Part):
    """Log-normal lengths in tokens."""

    median: Tokens
    p95: Tokens | None = None
    max: Tokens | None = None


class Poisson(Part):
    """Independent arrivals at a constant rate."""

    per_second: Positive
    seconds: Positive


class Steady(Part):
    """Arrivals at equal distances."""

    per_second: Positive
    seconds: Positive


class Gamma(Part):
    """Gaps from a gamma law; ``cv`` over 1 means bursts."""

    per_second: Positive
    cv: Annotated[float, Field(ge=0.05, le=50)]
    seconds: Positive


class OnOff(Part):
    """Poisson for ``onSeconds``, nothing for ``offSeconds``, over and over."""

    per_second: Positive
    on_seconds: Positive
    off_seconds: Positive
    seconds: Positive


class Ramp(Part):
    """Poisson at a rate that goes evenly from one to the other."""

    from_per_second: Seconds
    to_per_second: Positive
    seconds: Positive


class Closed(Part):
    """Clients that send their next request ``thinkSeconds`` after they have their answer."""

    clients: Annotated[int, Field(ge=1, le=100_000)]
    think_seconds: Seconds = 0.0
    seconds: Positive


KINDS = ("trace", "poisson", "steady", "gamma", "on_off", "ramp", "closed")


class Traffic(Part):
    """One stream of requests; several of a model add up."""

    trace: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    poisson: Poisson | None = None
    steady: Steady | None = None
    gamma: Gamma | None = None
    on_off: OnOff | None = None
    ramp: Ramp | None = None
    closed: Closed | None = None
    start_seconds: Seconds = 0.0
    seconds: Positive | None = None  # of a trace: no more than its first so many
    input: Tokens | Lengths = 512
    output: Tokens | Lengths = 128

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            known = ", ".join(to_camel(kind) for kind in KINDS)
            raise ValueError(f"give one of {known}; there are {len(given)}")
        if self.seconds is not None and self.trace is None:
            raise ValueError("`seconds` beside the kind cuts a trace, and this is none")
        return self


class Pool(pool.GPUPoolSpec):
    """Equal GPU nodes, as a GPUPool's spec describes them."""

    name: Name = "pool"


class SimulatedModel(Part):
    """One ModelServe and who calls it."""

    name: Name = "model"
    spec: ModelServeSpec
    traffic: list[Traffic] = Field(default=[], max_length=1000)
    initial_replicas: Annotated[int, Field(ge=0, le=1000)] = 0

    @model_validator(mode="after")
    def _bounds(self) -> Self:
        scaling = self.spec.scaling
        if scaling.min_replicas > scaling.max_replicas:
            raise ValueError(
                f"spec.scaling.minReplicas {scaling.min_replicas} is above maxReplicas "
                f"{scaling.max_replicas}"
            )
        return self


class Objective(Part):
    """What a request is promised: SLO attainment is the share of all requests that got it."""

    ttft_seconds: Positive = 5.0
    tpot_seconds: Positive | None = None


class Scenario(Part):
    """A whole scenario.

    A run begins ``leadInSeconds`` before the traffic (left out: the longest predicted cold start,
    so that a policy that knows the future can act on it and a fixed count is warm) and ends
    ``tailSeconds`` after its last arrival, or with the last answer if that is later.
    """

    description: Annotated[str, Field(max_length=2000)] = ""
    seed: Annotated[int, Field(ge=0, le=2**63)] = 0
    pools: Annotated[list[Pool], Field(min_length=1, max_length=1000)]
    models: Annotated[list[SimulatedModel], Field(min_length=1, max_length=10_000)]
    objective: Objective = Objective()
    # Sigma of an engine step's log-normal duration; 0 is faster to simulate.
    step_jitter: Annotated[float, Field(ge=0, le=0.5)] = assembly.STEP_JITTER
    gpu_hour_price: Annotated[float, Field(ge=0, le=1e6)] | None = None
    lead_in_seconds: Seconds | None = None
    tail_seconds: Seconds = 900.0

    @model_validator(mode="after")
    def _names(self) -> Self:
        for kind, names in (
            ("model", [one.name for one in self.models]),
            ("pool", [one.name for one in self.pools]),
        ):
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise ValueError(f"two {kind}s are called {twice!r}: give each its own name")
        return self
