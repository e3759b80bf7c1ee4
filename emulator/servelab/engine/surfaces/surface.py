"""What a surface is to the server, and what the server is to a surface."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from modelserve.api import wire
from modelserve.catalog import gpus
from modelserve.decide import coldstart
from modelserve.engines.launch import Launch
from servelab.engine.assembly import EngineSpec
from servelab.engine.calls import Served
from servelab.engine.exchange import Exchange, Request, Response, Route
from servelab.engine.metrics.exporting import Exporter, Load
from servelab.engine.replying import Choice, Reply


@dataclass(frozen=True, slots=True)
class StartLine:
    """A line due at this share (0 to 1) of a phase of the cold start.

    ``listens``: the engine listens from here on, though it is not ready.
    """

    phase: wire.Phase
    share: float
    text: str
    listens: bool = False


class State(StrEnum):
    """Where an engine is in its life."""

    LOADING = "loading"
    READY = "ready"
    DRAINING = "draining"


class Host(Protocol):
    """The engine behind a surface."""

    @property
    def spec(self) -> EngineSpec: ...

    @property
    def served(self) -> Served: ...

    @property
    def created_unix_s(self) -> int: ...

    @property
    def state(self) -> State: ...

    @property
    def start_up_s(self) -> float:
        """How long it took to be ready, in emulated seconds; 0 until it is."""
        ...

    @property
    def load(self) -> Load: ...

    @property
    def exporter(self) -> Exporter: ...

    @property
    def open_requests(self) -> int:
        """Sequences that wait or run."""
        ...

    def unix_s(self) -> float:
        """The time of day."""
        ...

    def name(self) -> str:
        """32 hexadecimal digits that name one request."""
        ...

    def settle(self) -> None:
        """Bring the core and the exporter up to now."""

    @property
    def choices(self) -> Sequence[Choice]:
        """All that waits or runs."""
        ...

    def abort(self, choices: Collection[Choice]) -> None:
        """End these; their answers tell of it."""

    def hold(self, *, requeue: bool = False) -> None:
        """Compute nothing until ``release``; ``requeue``: all that run queue up again."""

    def release(self) -> None:
        """Go on after ``hold``."""

    def forget(self) -> bool:
        """Empty the prefix cache, if nothing runs or waits; whether it was done."""
        ...

    def generate(self, exchange: Exchange, reply: Reply) -> None:
        """Put the reply's call into the core; the reply answers the exchange as tokens come.

        Raises QueueFull or another ModelServeError if the core does not take it.
        """


class Log(Protocol):
    """The lines of an engine's log, with marks for the time (stamps); None where it writes none."""

    def start_lines(
        self, started: Launch, planned: coldstart.Plan, gpu: gpus.Gpu
    ) -> Sequence[StartLine]:
        """From process start to readiness, with the plan's numbers."""

    def access(self, client: str, method: str, target: str, status: int) -> str | None:
        """A request that was answered."""

    def load(self, prompt_per_s: float, generation_per_s: float, gauges: Load) -> str | None:
        """Throughput (tokens per emulated second) and load, from time to time."""

    def stop_lines(self) -> Sequence[str]:
        """What a stopping server says."""


class Surface(Protocol):
    """The outside of one engine."""

    @property
    def server(self) -> str | None:
        """The header Server, if it sends one."""
        ...

    @property
    def vary(self) -> str | None:
        """The header Vary of all its answers, if it sends one."""
        ...

    def routes(self) -> Sequence[Route]:
        """All paths it knows."""

    def not_found(self, request: Request) -> Response:
        """The answer to a path it does not know."""

    def wrong_method(self, request: Request, allowed: Sequence[str]) -> Response:
        """The answer to a path it knows under other methods, in the routes' order."""

    def refused(self, request: Request, error: Exception) -> Response:
        """The answer where a handler raised: a refusal, a full queue, or a fault of our own."""

    def unready(self, request: Request) -> Response:
        """The answer while it loads, where it listens then."""


@runtime_checkable
class ManyPorts(Protocol):
    """A surface that the real engine shows on several ports."""

    def other_ports(self) -> Mapping[int, Sequence[Route]]:
        """Routes on ports beside the main one."""
