"""What an engine's exporter is to the server, and what it reads at a scrape."""

from collections.abc import Sequence
from typing import Protocol

from servelab.engine.core.sequences import Output


class Load(Protocol):
    """The gauges of a moment; the core has them."""

    @property
    def running(self) -> int:
        """Requests in the batch."""
        ...

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        ...

    @property
    def kv_usage(self) -> float:
        """Share of KV blocks in use, 0 to 1."""
        ...

    @property
    def prefix_tokens(self) -> tuple[int, int]:
        """Tokens looked up in the prefix cache so far, and those found."""
        ...


class Exporter(Protocol):
    """The metrics of one engine: fed with the core's outputs, read at each scrape."""

    @property
    def content_type(self) -> str: ...

    @property
    def totals(self) -> tuple[float, float]:
        """Prompt and generated tokens so far."""
        ...

    def observe(self, outputs: Sequence[Output]) -> None:
        """Count what the core brought."""

    def count_request(self, n: int, max_tokens: int | None) -> None:
        """Count the parameters of a request that was taken."""

    def count_rejection(self) -> None:
        """Count a request refused because too many wait."""

    def render(self) -> str:
        """The exposition."""
