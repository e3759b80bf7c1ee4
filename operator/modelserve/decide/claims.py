"""Who writes the count: a live count that is not the last one we wrote is a foreign writer's.

It is left alone for one down window, then taken back once, with the wait doubling up to an hour
while the other one keeps on; at once where requests are held at zero.
"""

from typing import NamedTuple

from modelserve.decide import observation

LONGEST_WAIT_S = 3600.0


class Claims(NamedTuple):
    """What is remembered of foreign writers."""

    foreign_since_s: float | None = None  # a foreign writer's count is live since then
    forced_at_s: float | None = None  # when the field was last taken back
    forced_times: int = 0  # in a row


class Claim(NamedTuple):
    """``foreign``: somebody else wrote the live count. ``force``: take it back now."""

    foreign: bool = False
    force: bool = False
    force_at_s: float | None = None


OURS = Claim()


def advance(
    past: Claims,
    seen: observation.Observation,
    parameters: observation.Parameters,
    now_s: float,
) -> tuple[Claim, Claims]:
    """Judge the live count. Forcing is assumed to happen: the next wait is twice as long."""
    settled = seen.written_count is None or seen.live_count == seen.written_count
    if settled and past.foreign_since_s is None and past.forced_at_s is None:
        return OURS, past
    window_s = min(LONGEST_WAIT_S, max(parameters.down.window_s, 1.0) * 2**past.forced_times)
    if settled:
        at_rest = past.forced_at_s is not None and now_s - past.forced_at_s > window_s
        if past.foreign_since_s is None and not at_rest:
            return OURS, past
        return OURS, Claims() if at_rest else past._replace(foreign_since_s=None)
    since_s = now_s if past.foreign_since_s is None else past.foreign_since_s
    asleep = seen.live_count == 0 and seen.signal.held > 0
    if not asleep and now_s < since_s + window_s:
        claim = Claim(foreign=True, force_at_s=since_s + window_s)
        return claim, past._replace(foreign_since_s=since_s)
    return Claim(foreign=True, force=True), Claims(
        forced_at_s=now_s, forced_times=min(past.forced_times + 1, 12)
    )
