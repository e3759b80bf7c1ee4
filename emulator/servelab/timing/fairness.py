"""Max–min fair rates of flows over links: nobody gets more while somebody smaller could.

Progressive filling: the share of all flows rises together; a flow stops where its cap or the first
full link on its path stops it. A flow of weight 8 (eight connections) counts as eight.
"""

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Demand:
    """What a flow could use: links it passes at once, its own most (bytes/s), its connections."""

    path: tuple[str, ...]
    cap_bytes_per_s: float = math.inf
    weight: float = 1.0


@dataclass(slots=True)
class _Group:
    """Flows that share a fate: same links (those with company), same cap, same weight."""

    links: tuple[str, ...]
    cap: float  # of one connection
    weight: float  # of all its flows together
    members: list[int]
    level: float | None = None


@dataclass(slots=True)
class _Link:
    left: float
    weight: float = 0.0
    groups: list[_Group] | None = None

    @property
    def level(self) -> float:
        """The share at which it is full, if nobody else stops before."""
        return max(0.0, self.left) / self.weight if self.weight > 0 else math.inf


def rates(
    demands: Sequence[Demand],
    capacities: Mapping[str, float],
    counts: Sequence[int] | None = None,
) -> list[float]:
    """Bytes per second of a flow of each demand, in their order.

    ``capacities`` are the links' bytes per second; ``counts`` say how many flows have that demand
    (one, if left out). Raises KeyError for a link without a rate.
    """
    groups = _grouped(demands, capacities, counts or [1] * len(demands))
    _fill(groups, _links(groups, capacities))
    found = [0.0] * len(demands)
    for group in groups:
        for place in group.members:
            found[place] = (group.level or 0.0) * demands[place].weight
    return found


def _grouped(
    demands: Sequence[Demand], capacities: Mapping[str, float], counts: Sequence[int]
) -> list[_Group]:
    """A link that only one demand uses is no more than a cap on its flows."""
    users: dict[str, int] = {}
    for demand in demands:
        for link in demand.path:
            users[link] = users.get(link, 0) + 1
    groups: dict[tuple[tuple[str, ...], float, float], _Group] = {}
    for place, (demand, count) in enumerate(zip(demands, counts, strict=True)):
        cap, links = demand.cap_bytes_per_s, []
        for link in demand.path:
            if users[link] > 1:
                links.append(link)
            elif capacities[link] < cap * count:
                cap = capacities[link] / count
        key = (tuple(links), cap, demand.weight)
        group = groups.get(key)
        if group is None:
            group = groups[key] = _Group(key[0], cap / demand.weight, 0.0, [])
        group.members.append(place)
        group.weight += demand.weight * count
    return list(groups.values())


def _links(groups: Sequence[_Group], capacities: Mapping[str, float]) -> dict[str, _Link]:
    links: dict[str, _Link] = {}
    for group in groups:
        for name in group.links:
            link = links.get(name)
            if link is None:
                link = links[name] = _Link(capacities[name], groups=[])
            link.weight += group.weight
            assert link.groups is not None
            link.groups.append(group)
    return links


def _fill(groups: Sequence[_Group], links: Mapping[str, _Link]) -> None:
    """Raise the common share from stop to stop. A link's stop only moves up, so a heap will do."""
    heap = [(link.level, place, name) for place, (name, link) in enumerate(links.items())]
    heapq.heapify(heap)
    by_cap = sorted(groups, key=lambda group: group.cap)
    taken = 0
    for _ in range(len(groups) + len(links)):
        while heap and links[heap[0][2]].level > heap[0][0]:
            _, place, name = heap[0]
            heapq.heapreplace(heap, (links[name].level, place, name))
        while taken < len(by_cap) and by_cap[taken].level is not None:
            taken += 1
        if taken == len(by_cap):
            return
        if heap and heap[0][0] < by_cap[taken].cap:
            level, _, name = heapq.heappop(heap)
            for group in links[name].groups or ():
                _stop(group, level, links)
        else:
            _stop(by_cap[taken], by_cap[taken].cap, links)


def _stop(group: _Group, level: float, links: Mapping[str, _Link]) -> None:
    if group.level is not None:
        return
    group.level = level
    for name in group.links:
        links[name].left -= level * group.weight
        links[name].weight -= group.weight
