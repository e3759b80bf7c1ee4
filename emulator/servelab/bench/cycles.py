"""Memory of the emulator, with its engines' processes, over cycles of pods that come and go."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelserve.adapters import events as eventsink
from modelserve.api import names
from servelab.bench import figure, fleet, soak
from servelab.engine import worker

PLAIN_CYCLES, ENGINE_CYCLES = 20, 12
# A minute is how long a pod's events are rationed, ten how long they may be counted up.
WARM_REAL_S = 75.0
SOAK_WARM_REAL_S = eventsink.AGGREGATE_REAL_S + 60.0


@dataclass(frozen=True, slots=True)
class Kind:
    """Pods of one kind, so many a cycle. ``figure`` begins the names of its figures."""

    figure: str
    error: str
    app: str
    pods: int
    cycles: int  # at least
    spec: Mapping[str, Any]
    annotations: Mapping[str, str]
    warm_real_s: float


PLAIN = Kind(
    figure="rss_growth_bytes_per_pod",
    error="rss_growth_error",
    app="cycle",
    pods=50,
    cycles=PLAIN_CYCLES,
    spec=fleet.PLAIN,
    annotations={},
    warm_real_s=WARM_REAL_S,
)


def engines(spec: Mapping[str, Any]) -> Kind:
    """Pods of that engine, which start at once.

    As many a cycle as a worker process takes away together: each cycle leaves it alike. What
    events are remembered for a minute the plain pods before them have used up.
    """
    return Kind(
        figure="rss_growth_bytes_per_engine_pod",
        error="rss_growth_engine_error",
        app="engines",
        pods=worker.COLLECTED_TOGETHER,
        cycles=ENGINE_CYCLES,
        spec=spec,
        annotations={names.WARM_UP_SECONDS: "0.1", names.IMAGE_SIZE: "1MB"},
        warm_real_s=WARM_REAL_S / 3,
    )


async def grown(
    found: fleet.Fleet, kind: Kind, duration_s: float | None
) -> Sequence[figure.Figure]:
    """Bytes a pod, and the error of that, over so many seconds, or its cycles without; once warm.

    For a given time it is warm once nothing more is remembered of what went before.
    """
    warm_s = kind.warm_real_s if duration_s is None else SOAK_WARM_REAL_S
    warm_at_s = time.monotonic() + warm_s
    samples: list[tuple[float, float]] = []
    while len(samples) < kind.cycles or time.monotonic() < warm_at_s + (duration_s or 0.0):
        await found.put(kind.app, kind.pods, kind.spec, kind.annotations)
        await found.all_ready(kind.app, kind.pods)
        await found.take_away(kind.app)
        if time.monotonic() >= warm_at_s:
            samples.append((float(len(samples)), float(found.usage().rss_bytes)))
    growth = soak.growth(samples)
    return (
        figure.Figure(
            kind.figure,
            growth.bytes_per_s / kind.pods,
            "bytes/pod",
            samples=len(samples) * kind.pods,
        ),
        figure.Figure(kind.error, growth.error_bytes_per_s / kind.pods, "bytes/pod"),
    )


def told(kind: Kind, duration_s: float | None) -> str:
    """What comes now, for who waits."""
    warm_s = kind.warm_real_s if duration_s is None else SOAK_WARM_REAL_S
    rest = f"{kind.cycles} times" if duration_s is None else f"{duration_s:.0f} s"
    return f"{kind.pods} pods ({kind.app}) that come and go, for {warm_s:.0f} s and {rest}"
