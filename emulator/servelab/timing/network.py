"""Links by name: what each gives from when on, and which flows ever pass it."""

import bisect
import math
from collections.abc import Iterable, Iterator

from modelserve import errors
from servelab.timing import projection, trajectory


class Network:
    """Capacities are bytes per second; a link's first one counts from ever."""

    def __init__(self) -> None:
        self._capacities: dict[str, list[tuple[float, float]]] = {}
        self._users: dict[str, dict[trajectory.Flow, None]] = {}
        self._leaving: dict[str, None] = {}

    @property
    def capacities(self) -> projection.Capacities:
        """By link, its capacities and since when, in order."""
        return self._capacities

    def set(self, link: str, bytes_per_s: float, now_s: float) -> bool:
        """Its capacity from then on; returns whether a known one changed. InputError if < 0."""
        if not 0 <= bytes_per_s < math.inf:
            raise errors.InputError(f"link {link}: {bytes_per_s} bytes/s; give a rate of 0 or more")
        self._leaving.pop(link, None)
        history = self._capacities.get(link)
        if history is None:
            self._capacities[link] = [(-math.inf, bytes_per_s)]
            self._users[link] = {}
            return False
        if self.capacity(link, now_s) == bytes_per_s and history[-1][0] <= now_s:
            return False
        del history[bisect.bisect_left(history, (now_s, -1.0)) :]
        history.append((now_s, bytes_per_s))
        return True

    def drop(self, link: str) -> None:
        """Forget it, once no flow passes it; an unknown one is fine."""
        if link in self._capacities:
            self._leaving[link] = None
            self._clear(link)

    def capacity(self, link: str, at_s: float) -> float:
        """What it gives at that time."""
        history = self._capacities[link]
        if len(history) == 1:
            return history[0][1]
        return next(rate for since_s, rate in reversed(history) if since_s <= at_s)

    def changes(
        self, flows: Iterable[trajectory.Flow], after_s: float
    ) -> Iterator[tuple[float, str]]:
        """When which of the links of these flows changes later than that."""
        for link in dict.fromkeys(link for flow in flows for link in flow.links):
            for since_s, _ in self._capacities[link][1:]:
                if since_s > after_s:
                    yield since_s, link

    def join(self, flow: trajectory.Flow) -> None:
        """It passes its links at some time. Raises InputError for one without a capacity."""
        for link in flow.links:
            if link not in self._capacities:
                raise errors.InputError(f"{flow.key}: nobody gave link {link} a rate; set it first")
        for link in flow.links:
            self._users[link][flow] = None

    def leave(self, flow: trajectory.Flow) -> None:
        """Nobody remembers it."""
        for link in flow.links:
            self._users[link].pop(flow, None)
            self._clear(link)

    def users(self, link: str) -> Iterable[trajectory.Flow]:
        """Flows that ever pass it."""
        return self._users[link]

    def reach(self, start: Iterable[trajectory.Flow], at_s: float) -> dict[trajectory.Flow, None]:
        """Flows not over by then that a link, or waiting, ties to these, however indirectly."""
        found = {flow: None for flow in start if not flow.over(at_s)}
        todo, links = list(found), set[str]()
        while todo:
            flow = todo.pop()
            near = [*flow.followers, *([flow.after] if flow.after is not None else [])]
            for link in flow.links:
                if link not in links:
                    links.add(link)
                    near += self._users[link]
            for other in near:
                if other not in found and not other.over(at_s):
                    found[other] = None
                    todo.append(other)
        return found

    def _clear(self, link: str) -> None:
        if link in self._leaving and not self._users[link]:
            del self._leaving[link], self._users[link], self._capacities[link]
