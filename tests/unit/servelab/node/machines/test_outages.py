"""A node's own faults, as time passes."""

import asyncio
from typing import Any

import pytest

from modelserve.api import faults as api
from servelab.node.faults import troubles
from servelab.node.machines import outages
from servelab.node.pools import registration

NODE = {"metadata": {"name": "n-0", "uid": "u", "creationTimestamp": "2027-01-15T08:00:00Z"}}
T0 = 1_800_000_000.0


class Sink:
    def __init__(self) -> None:
        self.told: list[str] = []

    def emit(self, subject: Any, kind: str, reason: str, message: str, **more: Any) -> None:
        self.told.append(reason)


class Node:
    """What Outages needs of a machine."""

    def __init__(self) -> None:
        self.object, self.name = NODE, "n-0"
        self.sink = Sink()
        self.trouble = troubles.of_node(NODE, 1000.0)


LAPSE_AND_RECLAIM: list[dict[str, Any]] = [
    {"type": "LeaseLapse", "at": "2027-01-15T08:00:00Z", "durationSeconds": 20},
    {"type": "SpotReclaim", "at": "2027-01-15T08:00:01Z", "noticeSeconds": 7},
]


@pytest.mark.timeout(60)
async def test_changes_are_told_and_a_spot_node_is_taken_away_once() -> None:
    node, now, changed, taken = Node(), [T0], [], []
    news = asyncio.Event()

    async def reclaim(item: Any, notice_s: float) -> None:
        taken.append((item["metadata"]["name"], notice_s))

    def tell(found: Any) -> None:
        changed.append(found.trouble.ailment(now[0]).cut_off)
        news.set()

    watching: Any = outages.Outages(node, lambda: now[0], tell, reclaim)  # type: ignore[arg-type]
    running = asyncio.create_task(watching.run())
    await asyncio.sleep(0)
    node.trouble.hear([api.Fault.model_validate(each) for each in LAPSE_AND_RECLAIM], 8)
    now[0] += 0.01
    watching.heard()
    await news.wait()
    news.clear()
    now[0] += 5
    watching.heard()
    await news.wait()
    watching.heard()
    await asyncio.sleep(0)
    running.cancel()
    assert (changed, taken, node.sink.told) == (
        [True, False],
        [("n-0", 7)],
        ["SpotInterruption", *registration.WELL],
    )
