"""Figures that the documentation names are the code's."""

from pathlib import Path

import pytest

from modelserve.adapters import events
from modelserve.api import wire
from servelab.node import process
from servelab.node.machines import heartbeat, pacing, sharding, shards
from servelab.node.pods import writes

ROOT = Path(__file__).parents[2]
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
AUTOSCALING = ROOT / "docs/explanation/autoscaling.md"
SCALE = ROOT / "docs/explanation/scale.md"
TIME = ROOT / "docs/explanation/time.md"
LONGEST_S = heartbeat.PERIOD_REAL_S * (1 + heartbeat.JITTER)
NUMBERS = {1: "a second", 3: "three"}


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (ARCHITECTURE, f"slots × {wire.IN_FLIGHT_FACTOR:g} requests in flight"),
        (ARCHITECTURE, f"pushes a snapshot within {wire.SNAPSHOT_DELAY_REAL_S * 1000:g} ms"),
        (ARCHITECTURE, f"every {wire.PROBE_PERIOD_REAL_S * 1000:g} ms"),
        (ARCHITECTURE, f"no answer within {NUMBERS[int(wire.FENCE_ANSWER_REAL_S)]}:"),
        (ARCHITECTURE, f"lapses after {NUMBERS[int(wire.FENCE_LAPSE_REAL_S)]} real seconds"),
        (AUTOSCALING, f"refused in the last {wire.REFUSED_WINDOW_REAL_S:g} real seconds"),
        (AUTOSCALING, f"send at most slots × {wire.IN_FLIGHT_FACTOR:g};"),
        (AUTOSCALING, f"for {NUMBERS[int(wire.SHARE_AWAITED_REAL_S)]} real seconds"),
        (TIME, f"the gateway probes {1 / wire.PROBE_PERIOD_REAL_S:g} times a second"),
        (SCALE, f"every {heartbeat.PERIOD_REAL_S:g} to {LONGEST_S:g} seconds"),
        (SCALE, f"API server are {process.CONNECTIONS} at most"),
        (SCALE, f"{writes.STATUSES_AT_ONCE} statuses and {writes.EVENTS_AT_ONCE} events"),
        (SCALE, f"queue of {events.QUEUE_LIMIT:,}"),
        (SCALE, f"renewed every {sharding.RENEW_REAL_S:g} s"),
        (SCALE, f"not seen to be renewed for {sharding.LAPSE_REAL_S:g} s"),
        (SCALE, f"did not get through for {sharding.GIVE_UP_REAL_S:g} s"),
        (SCALE, f"looks every {shards.LOOK_REAL_S:g} s"),
        (SCALE, f"at last one in {pacing.MOST_REAL_S:g} s"),
    ],
)
def test_a_page_says_what_the_code_does(page: Path, words: str) -> None:
    assert words in " ".join(page.read_text().split())
