"""Memory over cycles of pods: what is made, and what comes out of it."""

import asyncio
import dataclasses
from typing import Any, cast

from servelab.bench import cycles, machine, nodes
from servelab.engine import worker

QUICK = dataclasses.replace(cycles.engines(nodes.ENGINE), warm_real_s=0.0)


class Fleet:
    """Pods that leave so many bytes each, where they are played."""

    def __init__(self, left_bytes: int) -> None:
        self.left_bytes = left_bytes
        self.rss_bytes = 90_000_000
        self.there = 0

    async def put(self, app: str, count: int, spec: Any, annotations: Any) -> None:
        self.there = count

    async def all_ready(self, app: str, count: int) -> None:
        assert self.there == count

    async def take_away(self, app: str) -> None:
        self.rss_bytes += self.there * self.left_bytes
        self.there = 0

    def usage(self) -> machine.Usage:
        assert not self.there
        return machine.Usage(0.0, self.rss_bytes)


def test_what_a_pod_leaves_is_told_with_its_error() -> None:
    fleet = cast(Any, Fleet(1000))
    growth, error = asyncio.run(cycles.grown(fleet, QUICK, None))
    assert (growth.name, round(growth.value)) == ("rss_growth_bytes_per_engine_pod", 1000)
    assert (error.name, round(error.value)) == ("rss_growth_engine_error", 0)
    assert growth.samples == cycles.ENGINE_CYCLES * worker.COLLECTED_TOGETHER
