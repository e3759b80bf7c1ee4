"""Demand: open requests on replicas that stay, held ones, and those turned away a moment ago.

``D = held + recently refused + Σ max(in flight from gateways, engine waiting + running)``. The
maximum per replica keeps what both see from counting twice, and the rest when one source fails.
"""

from collections.abc import Mapping
from typing import NamedTuple

from modelserve.decide import observation

# No replica and no gateway has more requests than this; a figure above it is no signal.
ABSURD_REQUESTS = 1e6
TERMINATING = observation.ReplicaState.TERMINATING


class Demand(NamedTuple):
    """Demand in requests. ``missing`` names what gave no usable figure; empty: all did."""

    total: float  # D
    held: int
    refused: int
    waiting: float  # in engines' queues
    running: float  # on replicas and not waiting, requests on their way to an engine included
    loads: Mapping[str, float]  # open requests by replica UID, terminating ones left out
    gateways: bool  # at least one live gateway with usable figures
    sampled: bool  # at least one engine with usable figures
    missing: tuple[str, ...]  # gateways, or ready replicas without a usable sample
    failing: tuple[str, ...]  # the same, but for replicas too young to have been scraped
    failing_at_s: float | None = None  # when the first of those left out will count as failing

    @property
    def on_replicas(self) -> float:
        """Open requests on replicas."""
        return self.waiting + self.running

    @property
    def signal(self) -> bool:
        """Whether anything at all is known."""
        return self.gateways or self.sampled

    @property
    def complete(self) -> bool:
        """Whether every ready replica and the gateways are known, so that shrinking is allowed."""
        return not self.missing


def usable(value: float | None) -> bool:
    """Whether a figure can be a number of requests: finite, not negative, not absurd."""
    return value is not None and 0 <= value <= ABSURD_REQUESTS


def measure(
    seen: observation.Observation, parameters: observation.Parameters, now_s: float
) -> Demand:
    """Add up the demand of one model."""
    signal = seen.signal
    held, refused = signal.held, signal.refused_recently
    gateways = signal.live_gateways > 0 and usable(held) and usable(refused)
    missing: list[str] = [] if gateways else ["the gateways"]
    failing = missing.copy()
    loads: dict[str, float] = {}
    waiting_sum = running_sum = 0.0
    sampled, failing_at_s = False, None
    for replica in seen.replicas:
        if replica.state is TERMINATING:
            continue
        load: float = replica.in_flight
        if not 0 <= load <= ABSURD_REQUESTS:
            load = 0.0
        waiting, running = replica.waiting, replica.running
        if (
            waiting is not None
            and running is not None
            and 0 <= waiting <= ABSURD_REQUESTS
            and 0 <= running <= ABSURD_REQUESTS
        ):
            sampled = True
            if waiting + running > load:
                load = waiting + running
            waiting_sum += waiting
            running_sum += load - waiting
        else:
            running_sum += load
            if replica.serves:
                missing.append(replica.name)
                ready_s = replica.ready_since_s
                at_s = now_s if ready_s is None else ready_s + parameters.sample_grace_s
                if at_s <= now_s:
                    failing.append(replica.name)
                elif failing_at_s is None or at_s < failing_at_s:
                    failing_at_s = at_s
        loads[replica.uid] = load
    if not gateways:
        held = refused = 0
    return Demand(
        held + refused + waiting_sum + running_sum,
        held,
        refused,
        waiting_sum,
        running_sum,
        loads,
        gateways,
        sampled,
        tuple(missing),
        tuple(failing),
        failing_at_s,
    )
