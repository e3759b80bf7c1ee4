"""Transfers that share links max–min fair: ten that read from one backend get a tenth each.

What an end depends on is worked out ahead, so ``ends_at_s`` is exact until something else starts,
stops or changes; then ``changes`` goes up, and ``take_moved`` tells whose end it was.
"""

from collections.abc import Iterable, Mapping

from servelab.timing import fairness, fluid, trajectory, transfers


class Shared:
    """``transfers.Transfers`` over links, set with ``set_link``, that others use too.

    A work without stages takes its duration, as in ``transfers.Alone``. Calls may come in any
    order of times: what begins in the past has shared its links with others since.
    """

    def __init__(self) -> None:
        self._fluid = fluid.Fluid()
        self._works: dict[str, tuple[transfers.Work, float]] = {}
        self._declared: dict[str, float] = {}

    @property
    def changes(self) -> int:
        return self._fluid.changes

    def take_moved(self) -> list[str]:
        """Keys whose end was given out and may have moved since; each once."""
        return self._fluid.take_moved()

    def set_link(self, name: str, bytes_per_s: float, now_s: float = 0.0) -> None:
        """A link and its bytes per second from ``now_s`` on; 0 holds up what is on it.

        The first rate of a link counts from ever. Raises InputError for a rate below 0.
        """
        self._fluid.set_link(name, bytes_per_s, now_s)

    def declare(self, links: Mapping[str, float], now_s: float) -> None:
        """Rates of links as their owner states them; told again unchanged, nothing changes.

        So a link that ``set_link`` slowed down since stays slow until its owner states another
        rate. Raises InputError for a rate below 0.
        """
        for name, bytes_per_s in links.items():
            if self._declared.get(name) != bytes_per_s:
                self.set_link(name, bytes_per_s, now_s)
                self._declared[name] = bytes_per_s

    def drop_links(self, names: Iterable[str]) -> None:
        """Forget links, as of a node that is gone, once nothing remembered passes them."""
        for name in names:
            self._declared.pop(name, None)
            self._fluid.drop_link(name)

    def start(self, key: str, work: transfers.Work, now_s: float, after: str | None = None) -> None:
        """Begin at ``now_s``, or when the transfer ``after`` has ended, if that is later.

        A key that already runs begins anew. ``now_s`` may lie in the past. Raises InputError for a
        link without a rate.
        """
        self._fluid.start(key, pieces(work), now_s, after)
        self._works[key] = (work, now_s)

    def ends_at_s(self, key: str) -> float:
        """When it ends, if nothing else starts; infinite if it is held up for ever."""
        return self._fluid.ends_at_s(key)

    def progress(self, key: str, now_s: float) -> transfers.Progress:
        """How far it is. Bytes grow with what has passed the links, all stages taken together."""
        work, started_s = self._works[key]
        left_s = max(0.0, self._fluid.ends_at_s(key) - max(now_s, started_s))
        whole = sum(stage.size_bytes for stage in work.stages)
        if whole <= 0:
            left_s = min(work.duration_s, left_s)
            rate = work.size_bytes / work.duration_s if work.duration_s else 0.0
            return transfers.Progress(
                work.size_bytes - rate * left_s, work.size_bytes, rate, left_s
            )
        moved, rate = self._fluid.at(key, now_s)
        share = work.size_bytes / whole
        return transfers.Progress(moved * share, work.size_bytes, rate * share, left_s)

    def load_bytes_per_s(self, link: str, now_s: float) -> float:
        """What passes a link at ``now_s``. Raises KeyError for an unknown link."""
        return self._fluid.load(link, now_s)

    def next_end_s(self) -> float:
        """When the next transfer ends that ``advance`` has not told of; infinite if none will."""
        return self._fluid.next_end_s()

    def wake_s(self) -> float:
        """When to call ``advance`` next: nothing ends before. Cheap, unlike ``next_end_s``.

        Infinite if nothing happens any more. What starts meanwhile may bring it forward.
        """
        return self._fluid.wake_s()

    def advance(self, now_s: float) -> list[str]:
        """Keys of the transfers that ended by ``now_s``, in order, each once. Told ends stay."""
        return self._fluid.advance(now_s)

    def stop(self, key: str, now_s: float | None = None) -> None:
        """Free its links and forget it; an unknown key is fine.

        Without ``now_s``, at the latest time that any call has named.
        """
        self._works.pop(key, None)
        self._fluid.stop(key, now_s)


def pieces(work: transfers.Work) -> list[trajectory.Piece]:
    """The pieces of a flow that does this work."""
    if not work.stages:
        return [trajectory.wait(work.duration_s)]
    found = []
    for stage in work.stages:
        path = tuple(dict.fromkeys(stage.path))
        demand = fairness.Demand(path, stage.cap_bytes_per_s, float(stage.connections))
        found += [trajectory.wait(stage.latency_s), trajectory.Piece(stage.size_bytes, demand)]
    return found
