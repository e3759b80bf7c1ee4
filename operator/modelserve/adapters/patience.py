"""A start that waits for the API server: it says at once what is amiss, then ever more seldom."""

import logging
import random
from collections.abc import Awaitable, Callable

from modelserve import errors, ports
from modelserve.adapters import backoff

log = logging.getLogger(__name__)

PAUSE_FIRST_REAL_S = 0.5
PAUSE_MOST_REAL_S = 5.0
# Between two lines on the same trouble: at first, and at most.
TOLD_FIRST_REAL_S = 10.0
TOLD_MOST_REAL_S = 600.0


class Complaints:
    """When to say again what is still amiss: at once, if it changed, and at growing intervals."""

    def __init__(self) -> None:
        self._told = ""
        self._again_real_s = 0.0
        self._pause_real_s = TOLD_FIRST_REAL_S

    def due(self, trouble: str, now_real_s: float) -> bool:
        """Whether this is to be told now; it then counts as told."""
        if trouble != self._told:
            self._told, self._pause_real_s = trouble, TOLD_FIRST_REAL_S
        elif now_real_s < self._again_real_s:
            return False
        else:
            self._pause_real_s = min(TOLD_MOST_REAL_S, 2 * self._pause_real_s)
        self._again_real_s = now_real_s + self._pause_real_s
        return True


async def until(
    attempt: Callable[[], Awaitable[None]], clock: ports.Clock, rng: random.Random | None = None
) -> None:
    """Until the attempt succeeds. What waiting mends is waited out: ClusterError, SetUpError.

    An API server that is away may come back, what it refuses us may be granted, and what it lacks
    be installed. InputError is raised: a wrong kubeconfig or time scale stays wrong.
    """
    complaints, began_real_s = Complaints(), clock.real_s()
    pause = backoff.Backoff(rng or random.Random(), PAUSE_FIRST_REAL_S, PAUSE_MOST_REAL_S)
    while True:
        try:
            return await attempt()
        except (errors.ClusterError, errors.SetUpError) as error:
            now_real_s = clock.real_s()
            if complaints.due(f"{type(error).__name__} {getattr(error, 'status', 0)}", now_real_s):
                log.warning("%s; trying again%s", error, _so_far(now_real_s - began_real_s))
        await clock.sleep_real(pause.next_real_s())


def _so_far(waited_real_s: float) -> str:
    return f", for {waited_real_s:.0f} s now" if waited_real_s >= 1 else ""
