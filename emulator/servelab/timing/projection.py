"""When flows end if nothing else starts: a run ahead that keeps nothing but the ends.

Flows whose links only they use are alike but for their size, so they are moved together, however
many there are: each of them goes by how many bytes one of its kind has moved.
"""

import heapq
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from servelab.timing import fairness, trajectory

# Bytes this close together, relative to what was moved, are reached at once.
EPSILON = 1e-12
Capacities = Mapping[str, Sequence[tuple[float, float]]]
Kind = tuple[tuple[str, ...], float, float]


@dataclass(slots=True, eq=False)
class _Lane:
    """Flows of one kind: they have one rate. ``moved`` is what each of them would have moved."""

    links: tuple[str, ...]
    cap: float
    weight: float
    rate: float = 0.0
    moved: float = 0.0
    goals: list[tuple[float, int, trajectory.Flow]] = field(default_factory=list)

    @property
    def due_s(self) -> float:
        """Seconds until the first of them is there."""
        if not self.goals:
            return math.inf
        left = self.goals[0][0] - self.moved
        if left <= EPSILON * self.moved:
            return 0.0
        return left / self.rate if self.rate else math.inf


class Projection:
    """From ``now_s`` on. ``flows`` are all that links or waiting tie together, and not over."""

    def __init__(
        self, flows: Iterable[trajectory.Flow], capacities: Capacities, now_s: float
    ) -> None:
        self.ends_s: dict[trajectory.Flow, float] = {}
        self._now_s = now_s
        self._flows = tuple(flows)
        self._known = frozenset(self._flows)
        self._capacities = capacities
        self._serial = itertools.count()
        # Of a flow: it starts, or what it waits for is over, or it is stopped.
        self._events: list[tuple[float, int, trajectory.Flow | None]] = []
        self._at: dict[trajectory.Flow, int] = {}
        self._lanes: dict[Kind, _Lane] = {}
        self._kinds = _kinds(self._flows, capacities, now_s)
        self._links = {link for kind in self._kinds.values() for link in kind[0]}
        self._rates: dict[str, float] = {}
        self._dirty = True

    def run(self) -> Mapping[trajectory.Flow, float]:
        """The end of each flow; infinite for one that is held up for ever."""
        for flow in self._flows:
            self._place(flow)
        self._read_rates()
        for link in self._links:
            for since_s, _ in self._capacities[link]:
                if since_s > self._now_s:
                    self._push(since_s, None)
        while len(self.ends_s) < len(self._flows):
            if self._dirty:
                self._share()
            first = min(self._lanes.values(), key=lambda lane: lane.due_s, default=None)
            due_s = math.inf if first is None else self._now_s + first.due_s
            next_s = min(due_s, self._events[0][0] if self._events else math.inf)
            if next_s == math.inf:
                break
            self._advance(next_s)
            if first is not None and due_s <= next_s:
                # A step too small for the clock to show is one all the same.
                first.moved = max(first.moved, first.goals[0][0])
            self._arrive()
            while self._events and self._events[0][0] <= self._now_s:
                self._happen(heapq.heappop(self._events)[2])
        return {flow: self.ends_s.get(flow, math.inf) for flow in self._flows}

    def _place(self, flow: trajectory.Flow) -> None:
        """Where a flow is at the beginning."""
        if flow.stop_s < math.inf:
            self._push(flow.stop_s, flow)
        if not flow.stretches:
            self._at[flow] = -1
            if flow.start_s is not None:
                self._push(flow.start_s, flow)
            return
        current = flow.stretches[-1]
        self._at[flow] = current.piece
        if flow.demand.path:
            self._join(flow, current.left_at(self._now_s))
        else:
            self._push(current.due_s, flow)

    def _push(self, at_s: float, flow: trajectory.Flow | None) -> None:
        heapq.heappush(self._events, (at_s, next(self._serial), flow))

    def _join(self, flow: trajectory.Flow, size_bytes: float) -> None:
        kind = self._kinds[flow.pieces[self._at[flow]].demand]
        lane = self._lanes.get(kind)
        if lane is None:
            lane = self._lanes[kind] = _Lane(*kind)
        heapq.heappush(lane.goals, (lane.moved + size_bytes, next(self._serial), flow))
        self._dirty = True

    def _advance(self, to_s: float) -> None:
        seconds = to_s - self._now_s
        if seconds > 0:
            for lane in self._lanes.values():
                lane.moved += lane.rate * seconds
        self._now_s = max(self._now_s, to_s)

    def _arrive(self) -> None:
        """Flows that have moved all of their piece go on."""
        over = []
        for lane in self._lanes.values():
            reached = lane.moved * (1 + EPSILON)
            while lane.goals and lane.goals[0][0] <= reached:
                over.append(heapq.heappop(lane.goals)[2])
                self._dirty = True
        for flow in over:
            if flow not in self.ends_s:
                self._next(flow)

    def _happen(self, flow: trajectory.Flow | None) -> None:
        if flow is None:
            self._read_rates()
        elif flow in self.ends_s:
            return
        elif flow.stop_s <= self._now_s:
            self._leave(flow)
            self._end(flow)
        elif self._at[flow] < 0 or not flow.pieces[self._at[flow]].demand.path:
            self._next(flow)

    def _next(self, flow: trajectory.Flow) -> None:
        place = self._at[flow] = self._at[flow] + 1
        if place == len(flow.pieces):
            self._end(flow)
            return
        piece = flow.pieces[place]
        if piece.demand.path:
            self._join(flow, piece.size_bytes)
        else:
            self._push(self._now_s + piece.size_bytes / piece.demand.cap_bytes_per_s, flow)

    def _leave(self, flow: trajectory.Flow) -> None:
        place = self._at[flow]
        if place < 0 or not flow.pieces[place].demand.path:
            return
        lane = self._lanes[self._kinds[flow.pieces[place].demand]]
        lane.goals = [goal for goal in lane.goals if goal[2] is not flow]
        heapq.heapify(lane.goals)
        self._dirty = True

    def _end(self, flow: trajectory.Flow) -> None:
        self.ends_s[flow] = self._now_s
        for follower in flow.followers:
            if follower in self._known and follower.start_s is None:
                self._push(max(self._now_s, follower.asked_s), follower)

    def _share(self) -> None:
        """Max–min fair rates, all lanes of flows at once (see ``fairness``)."""
        self._dirty = False
        waiting = [lane for lane in self._lanes.values() if lane.goals]
        if len(waiting) == 1:
            lane = waiting[0]
            least = min((self._rates[link] for link in lane.links), default=math.inf)
            lane.rate = min(lane.cap, least / len(lane.goals))
            return
        left: dict[str, float] = {}
        weights: dict[str, float] = {}
        for lane in waiting:
            weight = lane.weight * len(lane.goals)
            for link in lane.links:
                if link in weights:
                    weights[link] += weight
                else:
                    left[link], weights[link] = self._rates[link], weight
        while waiting:
            full, tight = math.inf, ""
            for link, weight in weights.items():
                level = left[link] / weight
                if level < full:
                    full, tight = max(0.0, level), link
            held = [lane for lane in waiting if lane.cap <= full * lane.weight]
            held = held or [lane for lane in waiting if tight in lane.links]
            for lane in held:
                lane.rate = min(lane.cap, full * lane.weight)
            if len(held) == len(waiting):
                return
            for lane in held:
                for link in lane.links:
                    left[link] -= lane.rate * len(lane.goals)
                    weights[link] -= lane.weight * len(lane.goals)
                    if weights[link] <= EPSILON:
                        del weights[link]
            waiting = [lane for lane in waiting if lane not in held]

    def _read_rates(self) -> None:
        """What the links give from now on."""
        self._rates = {
            link: next(rate for since_s, rate in reversed(history) if since_s <= self._now_s)
            for link, history in ((link, self._capacities[link]) for link in self._links)
        }
        self._dirty = True


def _kinds(
    flows: Iterable[trajectory.Flow], capacities: Capacities, now_s: float
) -> Mapping[fairness.Demand, Kind]:
    """What is left of each demand when links that only one flow will use count as its own cap."""
    counts: dict[fairness.Demand, int] = {}
    users: dict[str, int] = {}
    for flow in flows:
        current = flow.stretches[-1].piece if flow.stretches else 0
        for piece in flow.pieces[current:]:
            demand = piece.demand
            if not demand.path:
                continue
            count = counts[demand] = counts.get(demand, 0) + 1
            if count == 1:
                for link in demand.path:
                    users[link] = users.get(link, 0) + 1
    found = {}
    for demand, count in counts.items():
        links, cap = [], demand.cap_bytes_per_s
        for link in demand.path:
            steady = capacities[link][-1][0] <= now_s
            if count == 1 and users[link] == 1 and steady:
                cap = min(cap, capacities[link][-1][1])
            else:
                links.append(link)
        found[demand] = (tuple(links), cap, demand.weight)
    return found
