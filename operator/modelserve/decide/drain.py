"""What one replica finishes per second while all its slots are taken: the measured drain rate.

Slots ÷ Ŝ is only the first guess: Ŝ is of the load there was, and long prompts are worked on one
after the other, however many slots there are. So completions are counted while every ready replica
is full, has been so for Ŝ, and none came or went. Requests that began together end together, so it
goes from completion to completion and over a whole Ŝ: in less, what one replica ends at once is a
spurt, and until the next one ends its batch a lull.
"""

from typing import NamedTuple

from modelserve.decide import demand, observation

LEAST_S = 10.0  # the guess is worth so many replica-seconds, or Ŝ if that is longer
# Between two looks further apart than 2 · Ŝ, or this, replicas may have been idle.
APART_S = 2.0
MEMORY_S = 300.0  # replica-seconds after which a count weighs 1/e


class Drain(NamedTuple):
    """Completions and replica-seconds while full, fading; full with ``ready`` since when."""

    done: float = 0.0
    busy_s: float = 0.0
    full_since_s: float | None = None
    ready: int = 0
    counted_s: float | None = None  # the completion from which the count under way began
    counted: int = 0  # completions since then
    looked_s: float = 0.0

    def rate_per_s(self, slots: int, service_s: float) -> float:
        """Requests per second of one full replica."""
        weight_s = max(LEAST_S, service_s)
        return (self.done + slots / service_s * weight_s) / (self.busy_s + weight_s)


def restored(done: float, busy_s: float) -> Drain:
    """From a status."""
    return Drain(max(0.0, done), max(0.0, busy_s))


def advance(
    past: Drain,
    seen: observation.Observation,
    now: demand.Demand,
    slots: int,
    service_s: float,
    now_s: float,
) -> Drain:
    """Take in the completions since the last call."""
    ready = 0
    for replica in seen.replicas:
        if replica.serves:
            ready += 1
            if now.loads[replica.uid] < slots:
                ready = 0
                break
    if not ready:
        return past if past.full_since_s is None else Drain(past.done, past.busy_s)
    apart = now_s - past.looked_s > max(APART_S, 2 * service_s)
    if past.full_since_s is None or past.ready != ready or apart:
        return Drain(past.done, past.busy_s, now_s, ready, looked_s=now_s)
    since_s, completions = past.full_since_s, seen.signal.completions
    past = past._replace(looked_s=now_s)
    if completions <= 0 or now_s - since_s < service_s:
        return past
    if past.counted_s is None or now_s <= past.counted_s:
        return past._replace(counted_s=now_s)
    counted, took_s = past.counted + completions, now_s - past.counted_s
    if took_s < service_s:
        return past._replace(counted=counted)
    busy_s = took_s * ready
    kept = max(0.0, 1 - busy_s / MEMORY_S)
    done, busy_s = past.done * kept + counted, past.busy_s * kept + busy_s
    return past._replace(done=done, busy_s=busy_s, counted_s=now_s, counted=0)
