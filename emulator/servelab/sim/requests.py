"""What became of every request, in columns: a day of them takes a few dozen bytes each."""

from array import array
from dataclasses import dataclass, field


@dataclass(slots=True)
class Request:
    """One on its way. ``client`` is the closed loop's that sent it, if any."""

    arrived_s: float
    input_tokens: int
    output_tokens: int
    client: object | None = None
    sent_s: float | None = None
    pod_uid: str = ""


@dataclass(slots=True)
class Records:
    """Seconds of each completed request, in order of completion; counts of the others.

    ``cut`` are streams that a scale-down ended, ``failed`` what an engine would not take.
    ``open_s`` is the integral of open requests over time, counted as they come and go.
    """

    ttft_s: "array[float]" = field(default_factory=lambda: array("d"))
    tpot_s: "array[float]" = field(default_factory=lambda: array("d"))
    e2e_s: "array[float]" = field(default_factory=lambda: array("d"))
    held_s: "array[float]" = field(default_factory=lambda: array("d"))
    arrived: int = 0
    refused: int = 0
    expired: int = 0
    cut: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    open_s: float = 0.0

    @property
    def completed(self) -> int:
        """Requests that got their whole answer."""
        return len(self.ttft_s)

    @property
    def ended(self) -> int:
        """Requests that are over, in whatever way."""
        return self.completed + self.refused + self.expired + self.cut + self.failed
