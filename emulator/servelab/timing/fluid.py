"""Flows on shared links over time: who is how far when, and what ends next, if nothing else starts.

What happens by the latest time that was named is worked out, bend by bend; ends beyond are found by
a run ahead (``projection``). What starts, stops or changes at a time that was worked out already
cuts the ways of the flows it can reach there, and only theirs; they are worked out anew. So calls
may come in any order of times, and the result is the same.
"""

import collections
import itertools
import math
from collections.abc import Iterable, Sequence

from modelserve import errors
from servelab.timing import agenda, fairness, lanes, network, projection, trajectory

# How long a flow that was stopped is remembered, in case something starts before its end.
MEMORY_S = 3600.0
# An end as it was told and as it comes differ by roundings.
ROUNDING_S = 1e-6


class Fluid:
    """Flows by key over links by name. Times are seconds of one clock, whichever."""

    def __init__(self) -> None:
        self.changes = 0
        self._flows: dict[str, trajectory.Flow] = {}
        self._network = network.Network()
        self._lanes = lanes.Lanes()
        self._agenda = agenda.Agenda()
        self._serial = itertools.count()
        self._stopped: collections.deque[trajectory.Flow] = collections.deque()
        self._ended: dict[trajectory.Flow, None] = {}
        self._moved: dict[str, None] = {}
        self._seen_s = self._worked_out_s = -math.inf

    def set_link(self, name: str, bytes_per_s: float, now_s: float) -> None:
        """A link's capacity from ``now_s`` on; 0 holds everything on it up. InputError if < 0."""
        if self._network.set(name, bytes_per_s, now_s):
            self._reopen(self._network.users(name), now_s)
            self._push(now_s, name)

    def drop_link(self, name: str) -> None:
        """Forget a link, once nobody remembered passes it; an unknown one is fine."""
        self._network.drop(name)

    def start(
        self,
        key: str,
        pieces: Sequence[trajectory.Piece],
        now_s: float,
        after: str | None = None,
    ) -> None:
        """Begin at ``now_s``, or when the flow ``after`` has ended, if that is later.

        A key that is known begins anew. Raises InputError for a link nobody declared.
        """
        kept = tuple(piece for piece in pieces if piece.size_bytes > 0)
        flow = trajectory.Flow(key, kept, now_s, next(self._serial))
        for piece in kept:
            if not piece.demand.path and not 0 < piece.demand.cap_bytes_per_s < math.inf:
                raise errors.InputError(f"{key}: bytes without a link need a rate above 0")
        self._network.join(flow)
        if key in self._flows:
            self.stop(key, now_s)
        self._flows[key] = flow
        before = self._flows.get(after) if after is not None else None
        self._follow(flow, before)
        self._reopen([flow], now_s)
        self._push(flow.next_s, flow)
        self._forget(now_s)

    def stop(self, key: str, now_s: float | None = None) -> None:
        """Take it off its links and forget it; None: at the latest time anybody has named."""
        flow = self._flows.pop(key, None)
        if flow is None:
            return
        self._ended.pop(flow, None)
        self._moved.pop(key, None)
        self._stopped.append(flow)
        at_s = self._seen_s if now_s is None else now_s
        if self._ended_by(flow, at_s):
            flow.pin()
            return
        flow.told = False
        flow.stop_s = max(at_s, flow.asked_s)
        self._reopen([flow], flow.stop_s)
        self._push(flow.next_s, flow)
        self._forget(at_s)

    def _ended_by(self, flow: trajectory.Flow, at_s: float) -> bool:
        """Whether it has ended, by what was told of its end, which is rounded otherwise."""
        self._work_out(at_s)
        if flow.over(at_s) or flow.projected_s is None or flow.projected_s > at_s:
            return flow.over(at_s)
        self._work_out(at_s + ROUNDING_S)
        return flow.over(at_s + ROUNDING_S)

    def ends_at_s(self, key: str) -> float:
        """When it ends if nothing else starts; infinite if never. KeyError for an unknown key."""
        flow = self._flows[key]
        flow.told = True
        # What happens by the latest time that was named is worked out; from there, run ahead.
        now_s = max(self._seen_s, self._worked_out_s)
        self._work_out(now_s)
        settled_s = flow.settled_s
        if settled_s is not None:
            return settled_s
        if flow.projected_s is None:
            tied = self._network.reach([flow], now_s)
            ends_s = projection.Projection(tied, self._network.capacities, now_s).run()
            for other, end_s in ends_s.items():
                other.projected_s = end_s
        assert flow.projected_s is not None
        return flow.projected_s

    def at(self, key: str, now_s: float) -> tuple[float, float]:
        """Bytes moved by ``now_s``, and the rate then. KeyError for an unknown key."""
        flow = self._flows[key]
        self._seen_s = max(self._seen_s, now_s)
        if self._ended_by(flow, now_s):
            return trajectory.total_bytes(flow.pieces), 0.0
        return flow.at(now_s)

    def load(self, link: str, now_s: float) -> float:
        """Bytes per second that pass a link at ``now_s``. KeyError for an unknown link."""
        self._work_out(now_s)
        users = (flow for flow in self._network.users(link) if not flow.over(now_s))
        return sum(flow.at(now_s)[1] for flow in users if _on(flow, link, now_s))

    def next_end_s(self) -> float:
        """When the next flow ends that ``advance`` has not told of; infinite if none will."""
        first_s = self._first_end_s()
        while self._agenda.next_s < first_s:
            self._step()
            first_s = self._first_end_s()
        return first_s

    def wake_s(self) -> float:
        """When to advance next: nothing ends before. Unlike an end, it needs nothing worked out."""
        return min(self._agenda.wake_s(), self._first_end_s())

    def advance(self, now_s: float) -> list[str]:
        """Keys of the flows that ended by ``now_s``, in order, each once. Told ends stay."""
        self._work_out(now_s)
        over = [flow for flow in self._ended if flow.over(now_s)]
        for flow in over:
            del self._ended[flow]
            flow.pin()
        self._seen_s = max(self._seen_s, now_s)
        return [flow.key for flow in sorted(over, key=lambda flow: (flow.stop_s, flow.serial))]

    def take_moved(self) -> list[str]:
        """Keys whose end was given out and may have moved since; each once."""
        moved, self._moved = self._moved, {}
        return list(moved)

    def _first_end_s(self) -> float:
        ends = (flow.end_s for flow in self._ended if flow.end_s is not None)
        return min(ends, default=math.inf)

    def _follow(self, flow: trajectory.Flow, before: trajectory.Flow | None) -> None:
        if before is None:
            flow.start_s = flow.asked_s
            return
        flow.after = before
        before.followers.append(flow)
        if before.end_s is not None:
            flow.start_s = max(flow.asked_s, before.end_s)

    def _reopen(self, start: Iterable[trajectory.Flow], at_s: float) -> None:
        """Cut the ways of all flows that a change of these at ``at_s`` can reach."""
        moved = False
        reached = self._network.reach(start, at_s)
        for flow in reached:
            flow.projected_s = None
            if flow.told and not flow.over(at_s) and flow.key in self._flows:
                flow.told, moved = False, True
                self._moved[flow.key] = None
        self.changes += moved
        if at_s >= self._worked_out_s:
            return
        for flow in reached:
            self._cut(flow, at_s)
        for since_s, link in self._network.changes(reached, at_s):
            self._push(since_s, link)

    def _cut(self, flow: trajectory.Flow, at_s: float) -> None:
        if not flow.known_after(at_s):
            flow.cut(at_s)
            return
        if flow.live:
            self._lanes.leave(flow)
        flow.cut(at_s)
        if flow.live:
            self._lanes.join(flow)
        self._ended.pop(flow, None)
        self._push(flow.next_s, flow)

    def _work_out(self, now_s: float) -> None:
        while self._agenda.next_s <= now_s:
            self._step()

    def _step(self) -> None:
        """Let everything happen that comes next at one time, then share the links anew."""
        at_s = self._agenda.next_s
        self._worked_out_s = max(self._worked_out_s, at_s)
        links: dict[str, None] = {}
        for thing in self._agenda.due():
            if isinstance(thing, str):
                links[thing] = None
            else:
                self._turn(thing, at_s, links)
        for component in self._lanes.components(links):
            self._bend(component, at_s)

    def _turn(self, flow: trajectory.Flow, at_s: float, links: dict[str, None]) -> None:
        """A flow starts, or goes on to its next piece, or ends."""
        piece = flow.stretches[-1].piece + 1 if flow.stretches else 0
        if flow.live:
            links.update(dict.fromkeys(flow.demand.path))
            self._lanes.leave(flow)
        if at_s >= flow.stop_s or piece == len(flow.pieces):
            self._end(flow, at_s)
            return
        flow.enter(piece, at_s)
        self._lanes.join(flow)
        links.update(dict.fromkeys(flow.demand.path))
        if not flow.demand.path:
            flow.set_rate(flow.demand.cap_bytes_per_s, at_s)
            self._push(flow.next_s, flow)

    def _end(self, flow: trajectory.Flow, at_s: float) -> None:
        flow.end_s = at_s
        if not flow.pinned and self._flows.get(flow.key) is flow:
            self._ended[flow] = None
        for follower in flow.followers:
            if follower.start_s is None:
                follower.start_s = max(at_s, follower.asked_s)
                self._push(follower.start_s, follower)

    def _bend(self, component: Sequence[lanes.Lane], at_s: float) -> None:
        """Give the flows of these lanes, which are all that share links, their rates."""
        demands = [lane.demand for lane in component]
        links = dict.fromkeys(link for demand in demands for link in demand.path)
        capacities = {link: self._network.capacity(link, at_s) for link in links}
        rates = fairness.rates(demands, capacities, [len(lane.flows) for lane in component])
        first_s, first = math.inf, None
        for lane, rate in zip(component, rates, strict=True):
            for flow in lane.flows:
                if flow.stretches[-1].bytes_per_s != rate:
                    flow.set_rate(rate, at_s)
                if flow.next_s < first_s:
                    first_s, first = flow.next_s, flow
        # One entry will do: whatever comes first bends all of them again.
        if first is not None:
            self._push(first_s, first)

    def _push(self, at_s: float, thing: agenda.Thing) -> None:
        self._agenda.push(at_s, thing, len(self._flows) + len(self._stopped))

    def _forget(self, now_s: float) -> None:
        """Drop what was stopped so long ago that nothing will start before its end."""
        self._seen_s = max(self._seen_s, now_s)
        self._work_out(self._seen_s - MEMORY_S)
        while self._stopped and self._stopped[0].over(self._seen_s - MEMORY_S):
            flow = self._stopped.popleft()
            self._network.leave(flow)
            for follower in flow.followers:
                follower.after = None
            if flow.after is not None:
                flow.after.followers.remove(flow)


def _on(flow: trajectory.Flow, link: str, now_s: float) -> bool:
    places = [stretch.piece for stretch in flow.stretches if stretch.at_s <= now_s]
    return bool(places) and link in flow.pieces[places[-1]].demand.path
