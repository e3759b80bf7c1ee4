"""How much an engine has done so far: what sensors of its GPUs are read from (pure)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from servelab.engine.core.sequences import Output
from servelab.engine.metrics.exporting import Load as Gauges


@dataclass(frozen=True, slots=True)
class Load:
    """Gauges of the moment, and sums since the engine began to serve. Seconds are emulated."""

    running: int = 0
    waiting: int = 0
    kv_usage: float = 0.0
    busy_s: float = 0.0
    steps: int = 0
    tokens: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> "Load":
        return cls(**body)


class Meter:
    """Sums up steps and the time they took, from the outputs of a core."""

    def __init__(self, gauges: Gauges) -> None:
        self._gauges = gauges
        self._busy_s = 0.0
        self._steps = 0
        self._tokens = 0.0
        self._end_s: float | None = None  # of the last step, if work was left then

    def observe(self, outputs: Sequence[Output]) -> None:
        """Count what the core brought."""
        for output in outputs:
            times_s = output.times_s
            if times_s:
                self._busy_s += max(0.0, times_s[-1] - self._began_s(output))
                self._steps += len(times_s)
                self._tokens += output.prefill_tokens + len(times_s) * len(output.ids)
                self._end_s = times_s[-1]
        if not (self._gauges.running or self._gauges.waiting):
            self._end_s = None

    def read(self) -> Load:
        """How things stand."""
        gauges = self._gauges
        return Load(
            gauges.running,
            gauges.waiting,
            gauges.kv_usage,
            self._busy_s,
            self._steps,
            self._tokens,
        )

    def _began_s(self, output: Output) -> float:
        """When the first of the steps began: when the one before ended, or work came."""
        if self._end_s is not None:
            return self._end_s
        first_s = output.times_s[0]
        if output.firsts:
            return min(first.arrived_s for first in output.firsts)
        return first_s - (output.times_s[1] - first_s if len(output.times_s) > 1 else 0.0)
