"""Transfers on the links of all nodes, on the virtual clock: who waits for one hears of its end."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

from servelab.node.machines import links
from servelab.sim.agenda import Agenda, Turn

Ended = Callable[[float], None]
# An end worked out from rates and the time it was set for differ by roundings.
ROUNDING_S = 1e-9


@dataclass(slots=True, eq=False)
class _Wait:
    ends_s: Callable[[], float]
    ended: Ended
    due_s: float = math.inf


class Moves:
    """One for a run. Ends move while other transfers start, stop, or are slowed down."""

    def __init__(self, agenda: Agenda) -> None:
        self.links = links.Links(self._moved)
        self._agenda = agenda
        self._waits: dict[str, dict[str, _Wait]] = {}  # by node and key

    def wait(self, node: str, key: str, ends_s: Callable[[], float], ended: Ended) -> None:
        """Call ``ended`` once ``ends_s`` is reached, however that moves until then."""
        wait = _Wait(ends_s, ended)
        self._waits.setdefault(node, {})[key] = wait
        self._set(node, key, wait)

    def forget(self, node: str, key: str) -> None:
        """Nobody waits for it any more; unknown keys are fine."""
        self._waits.get(node, {}).pop(key, None)

    def drop(self, node: str) -> None:
        """The node is gone, with all that came to it."""
        self._waits.pop(node, None)

    def _moved(self, key: str) -> None:
        # A pull may wait for layers that others bring: all of its node look again.
        node = key.partition("/")[0]
        for name, wait in self._waits.get(node, {}).items():
            self._set(node, name, wait)

    def _set(self, node: str, key: str, wait: _Wait) -> None:
        due_s = wait.ends_s()
        if due_s != wait.due_s:
            wait.due_s = due_s
            self._agenda.at(due_s, Turn.LIFE, functools.partial(self._look, node, key, wait))

    def _look(self, node: str, key: str, wait: _Wait, now_s: float) -> None:
        if now_s < wait.due_s or self._waits.get(node, {}).get(key) is not wait:
            return
        if wait.ends_s() > now_s + ROUNDING_S:
            wait.due_s = math.inf
            self._set(node, key, wait)
            return
        del self._waits[node][key]
        wait.ended(now_s)
