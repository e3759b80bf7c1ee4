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
# Shorter ones would take for ever to count off, and hold no request.
Spell = Annotated[float, Field(ge=0.01, le=1e7, allow_inf_nan=False)]
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

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.p95 is not None and self.p95 < self.median:
            raise ValueError(f"p95 {self.p95} is below the median {self.median}")
        if self.max is not None and self.max < self.median:
            raise ValueError(f"max {self.max} is below the median {self.median}")
        return self


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
    on_seconds: Spell
    off_seconds: Spell
    seconds: Positive


class Ramp(Part):
    """Poisson at a rate that goes evenly from one to the other."""

    from_per_second: Seconds
    to_per_second: Positive
    seconds: Positive


class Step(Part):
    """Poisson at one rate, and at another from ``atSeconds`` on."""

    from_per_second: Seconds = 0.0
    to_per_second: Seconds
    at_seconds: Seconds
    seconds: Positive


class Windows(Part):
    """A rate for each stretch of ``secondsEach``; ``cv`` is the variation of the gaps."""

    per_second: Annotated[list[Seconds], Field(min_length=1, max_length=100_000)]
    seconds_each: Positive
    cv: Annotated[float, Field(ge=0.05, le=50)] = 1.0


class ServeGen(Part):
    """Requests drawn as ServeGen describes one of its clients: rates, laws of gaps and lengths.

    ``rates`` and ``lengths`` name files in ServeGen's layout (see ``workload.servegen``).
    """

    client: Annotated[str, Field(pattern="^.+/.+$", max_length=253)]
    rates: Annotated[str, Field(min_length=1, max_length=4096)] = "servegen-clients"
    lengths: Annotated[str, Field(min_length=1, max_length=4096)] = "servegen-lengths"
    from_seconds: Seconds = 0.0
    seconds: Positive
    scale: Positive = 1.0


class Closed(Part):
    """Clients that send their next request ``thinkSeconds`` after they have their answer."""

    clients: Annotated[int, Field(ge=1, le=100_000)]
    think_seconds: Seconds = 0.0
    seconds: Positive


LAWS = ("poisson", "steady", "gamma", "on_off", "ramp", "step", "windows", "serve_gen")
KINDS = ("trace", *LAWS, "closed")


class Traffic(Part):
    """One stream of requests; several of a model add up."""

    trace: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    poisson: Poisson | None = None
    steady: Steady | None = None
    gamma: Gamma | None = None
    on_off: OnOff | None = None
    ramp: Ramp | None = None
    step: Step | None = None
    windows: Windows | None = None
    serve_gen: ServeGen | None = None
    closed: Closed | None = None
    start_seconds: Seconds = 0.0
    seconds: Positive | None = None  # of a trace: no more than its first so many
    # Of a trace: blocks of so many seconds, drawn from all of it, by each seed others.
    resample_seconds: Annotated[float, Field(ge=1, le=1e9)] | None = None
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
        if self.resample_seconds is not None and self.trace is None:
            raise ValueError("`resampleSeconds` draws blocks of a trace, and this is none")
        block_s, of_s = self.resample_seconds, self.seconds
        if block_s is not None and of_s is not None and block_s >= of_s:
            raise ValueError(
                f"`resampleSeconds` {block_s:g} must be less than `seconds` {of_s:g}: of those "
                "blocks are drawn"
            )
        if self.trace is not None and self.model_fields_set & {"input", "output"}:
            raise ValueError("a trace has lengths of its own: leave `input` and `output` out")
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
    # Each model's requests come to so many gateways in turn.
    gateways: Annotated[int, Field(ge=1, le=64)] = 1
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
