"""Which flows move over which links at one moment. Flows that demand the same are one lane."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from servelab.timing import fairness, trajectory


@dataclass(slots=True, eq=False)
class Lane:
    """Flows under way with the same links, cap and weight: they always have the same rate."""

    demand: fairness.Demand
    flows: dict[trajectory.Flow, None] = field(default_factory=dict)


class Lanes:
    """The lanes in use, by link. Flows without a link have none: nobody moves them."""

    def __init__(self) -> None:
        self._by_demand: dict[fairness.Demand, Lane] = {}
        self._by_link: dict[str, dict[Lane, None]] = {}

    def join(self, flow: trajectory.Flow) -> None:
        """The flow moves over the links of the piece it is in."""
        demand = flow.demand
        if not demand.path:
            return
        lane = self._by_demand.get(demand)
        if lane is None:
            lane = self._by_demand[demand] = Lane(demand)
            for link in demand.path:
                self._by_link.setdefault(link, {})[lane] = None
        lane.flows[flow] = None

    def leave(self, flow: trajectory.Flow) -> None:
        """The flow has left the links of the piece it is in."""
        demand = flow.demand
        if not demand.path:
            return
        lane = self._by_demand[demand]
        del lane.flows[flow]
        if not lane.flows:
            del self._by_demand[demand]
            for link in demand.path:
                del self._by_link[link][lane]
                if not self._by_link[link]:
                    del self._by_link[link]

    def components(self, links: Iterable[str]) -> list[list[Lane]]:
        """The lanes on these links and those they share links with, and so on, set by set."""
        seen: set[str] = set()
        found = [self._connected(link, seen) for link in links if link not in seen]
        return [lanes for lanes in found if lanes]

    def _connected(self, link: str, seen: set[str]) -> list[Lane]:
        found: dict[Lane, None] = {}
        todo = [link]
        seen.add(link)
        while todo:
            for lane in self._by_link.get(todo.pop(), ()):
                if lane not in found:
                    found[lane] = None
                    for other in lane.demand.path:
                        if other not in seen:
                            seen.add(other)
                            todo.append(other)
        return list(found)
