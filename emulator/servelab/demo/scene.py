"""What there is to see at one moment of the demo, and the series that make its chart."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from modelserve import ports
from servelab.trial import eyes


@dataclass(frozen=True, slots=True)
class Scene:
    """One moment. ``elapsed_s`` counts emulated seconds since the first request."""

    act: str = ""
    elapsed_s: float = 0.0
    desired: int = 0
    ready: int = 0
    starting: int = 0
    leaving: int = 0
    held: int = 0
    running: int = 0
    waiting: int = 0
    sent: int = 0
    done: int = 0
    errors: int = 0
    waiting_for: str = ""
    decision: str = ""


def look(watched: eyes.Eyes, name: str) -> Mapping[str, Any]:
    """Those fields of a Scene that the API server tells."""
    status = watched.status(name)
    pods = watched.engines(name)
    serving = [pod for pod in pods if eyes.serving(pod)]
    ready = sum(1 for pod in serving if eyes.ready(pod))
    demand = status.get("demand") or {}
    return {
        "desired": watched.ordered(name),
        "ready": ready,
        "starting": len(serving) - ready,
        "leaving": len(pods) - len(serving),
        "held": int(demand.get("held", 0)),
        "running": int(demand.get("running", 0)),
        "waiting": int(demand.get("waiting", 0)),
        "waiting_for": str(status.get("waitingFor") or ""),
        "decision": str((status.get("lastScale") or {}).get("message") or ""),
    }


@dataclass(slots=True)
class Series:
    """Replicas over time: (monotonic real s, pods that stay), a point at each change."""

    watched: eyes.Eyes
    name: str
    clock: ports.Clock
    points: list[tuple[float, float]] = field(default_factory=list)

    def begin(self) -> None:
        """Take a point now and at each change from now on."""
        self.points = [(self.clock.real_s(), 0.0)]
        self.watched.pods.on_change(self._note)

    def since(self, start_real_s: float, time_scale: float) -> list[tuple[float, float]]:
        """The series in emulated seconds after ``start_real_s``."""
        return [
            (max(0.0, (at_real_s - start_real_s) * time_scale), value)
            for at_real_s, value in self.points
        ]

    def _note(self, old: ports.Object | None, new: ports.Object | None) -> None:
        count = float(sum(1 for pod in self.watched.engines(self.name) if eyes.serving(pod)))
        if count != self.points[-1][1]:
            self.points.append((self.clock.real_s(), count))
