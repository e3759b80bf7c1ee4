"""The gateways of one model: the live one's state machine, once for each, behind one front.

Clients come to them in turn, as through a Service. What each does is its own; only the shares of
the slots, dealt out by the operator's own arithmetic, tie them together.
"""

from collections.abc import Iterable, Sequence

from modelserve.api import wire
from modelserve.decide import fleet, holding, shares

NAMESPACE = "default"


class Gateways:
    """So many gateways. Each call takes an input and the time, and returns effects."""

    def __init__(
        self, count: int, model: str, terms: holding.Terms, slots: int, now_s: float
    ) -> None:
        self.terms = terms
        self._model = model
        self._slots = slots
        self._each = {f"gateway-{n + 1}": holding.Holding(terms) for n in range(count)}
        self._order = tuple(self._each.values())
        self._first = self._order[0]
        self._of: dict[int, holding.Holding] = {}
        self._turn = 0
        self.deal(now_s)

    # --- requests ---------------------------------------------------------------------------------

    def arrive(self, number: int, size_bytes: int, now_s: float) -> Sequence[holding.Effect]:
        """A request comes to the next gateway."""
        machine = self._order[self._turn]
        self._turn = (self._turn + 1) % len(self._order)
        self._of[number] = machine
        return machine.arrive(number, size_bytes, now_s)

    def complete(self, number: int, now_s: float) -> Sequence[holding.Effect]:
        """Its answer is out."""
        return self._of.pop(number).complete(number, now_s)

    def drop(self, number: int, now_s: float) -> Sequence[holding.Effect]:
        """It failed."""
        return self._of.pop(number).drop(number, now_s)

    def forget(self, number: int) -> None:
        """Its gateway has turned it away."""
        del self._of[number]

    # --- the world --------------------------------------------------------------------------------

    def update(self, replicas: Iterable[fleet.Replica], now_s: float) -> Sequence[holding.Effect]:
        """The replicas changed."""
        known = tuple(replicas)
        return self._all([each.update(self.terms, known, now_s) for each in self._order])

    def fence(self, fence_id: str, uids: Sequence[str], now_s: float) -> bool:
        """Whether all of them grant it; all are asked."""
        answers = [each.fence(fence_id, uids, now_s).granted for each in self._order]
        return all(answers)

    def unfence(self, fence_id: str, now_s: float) -> Sequence[holding.Effect]:
        """The operator takes it back."""
        return self._all([each.unfence(fence_id, now_s) for each in self._order])

    def deal(self, now_s: float) -> Sequence[holding.Effect]:
        """The operator deals out the slots, by what they hold and have in flight."""
        dealt = shares.deal(self._slots, self.snapshots(now_s), NAMESPACE, self._model)
        return self._all(
            [
                self._each[name].set_share(share, now_s)
                for name, share in dealt.items()
                if self._each[name].share != share
            ]
        )

    def advance(self, now_s: float) -> Sequence[holding.Effect]:
        """Time passed."""
        return self._all([each.advance(now_s) for each in self._order])

    # --- what is ----------------------------------------------------------------------------------

    @property
    def several(self) -> bool:
        """Whether there is anything to deal out."""
        return len(self._order) > 1

    @property
    def held(self) -> int:
        """Requests accepted and not sent."""
        return sum([each.held for each in self._order]) if self.several else self._first.held

    @property
    def in_flight(self) -> int:
        """Requests sent and not ended."""
        if not self.several:
            return self._first.in_flight
        return sum([each.in_flight for each in self._order])

    def next_wake(self) -> float | None:
        """When ``advance`` has something to do."""
        times = [each.next_wake() for each in self._order]
        return min([at_s for at_s in times if at_s is not None], default=None)

    def snapshots(self, now_s: float) -> Sequence[wire.DemandSnapshot]:
        """What each of them tells the operator."""
        return [
            wire.DemandSnapshot(name, "1", 0, (each.demand(NAMESPACE, self._model, now_s),))
            for name, each in self._each.items()
        ]

    def _all(self, found: Sequence[Sequence[holding.Effect]]) -> Sequence[holding.Effect]:
        return found[0] if len(found) == 1 else [each for effects in found for each in effects]
