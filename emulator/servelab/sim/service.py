"""One model: its gateways, its replicas, and what became of its requests.

A gateway is the live one's state machine, ``modelserve.decide.holding``; the engines are the live
ones' core. What lies between them on a network takes no time here.
"""

import math
from collections.abc import Iterable, Sequence

from modelserve import errors
from modelserve.decide import fleet, holding, prediction, routing
from servelab.engine.core.sequences import CoreRequest, Finish
from servelab.sim import gateways, scenario
from servelab.sim.agenda import Turn
from servelab.sim.deployment import Deployment
from servelab.sim.place import Place, Told
from servelab.sim.replicas import Replica
from servelab.sim.requests import Records, Request
from servelab.sim.traffic import Client
from servelab.workload.arrivals import Arrival

# What a request's body weighs; our choice: four bytes a token and the JSON around them.
BYTES_PER_TOKEN, BYTES_AROUND = 4, 200
# A hold expires this much late, so that no rounding keeps it from being over.
LATE_S = 1e-3


class Service:
    """One model of a run. ``told`` is called when its autoscaler may want to look."""

    def __init__(self, model: scenario.SimulatedModel, place: Place) -> None:
        self.name = model.name
        self.spec = model.spec
        assessed = prediction.assess(model.name, model.spec)
        if isinstance(assessed, prediction.Problem):
            raise errors.InputError(f"model {model.name}: {assessed.message}")
        self.assessment = assessed
        self.place = place
        self.records = Records()
        self.deployment = Deployment(model.name, model.spec, assessed, place, self)
        self.told: Told = lambda now_s: None
        self.on_change: Told = lambda now_s: None
        self.gateway = gateways.Gateways(
            place.gateways,
            model.name,
            routing.read_terms(model.spec),
            assessed.slots,
            place.agenda.now_s,
        )
        self._open: dict[int, Request] = {}
        self._ids = 0
        self._counted = 0
        self._counted_s = place.agenda.now_s
        self._expiry_s = math.inf

    # --- requests ---------------------------------------------------------------------------------

    def arrive(self, arrival: Arrival, client: Client | None, now_s: float) -> None:
        """A request comes to a gateway."""
        self._ids += 1
        self._count(1, now_s)
        request = Request(now_s, arrival.input_tokens, arrival.output_tokens, client)
        self._open[self._ids] = request
        self.records.arrived += 1
        size_bytes = BYTES_AROUND + BYTES_PER_TOKEN * arrival.input_tokens
        self._apply(self.gateway.arrive(self._ids, size_bytes, now_s), now_s)
        if self.gateway.held and self._expiry_s == math.inf:
            self._watch_gateway(now_s)
        self.told(now_s)

    def finished(self, replica: Replica, finish: Finish) -> None:
        """A request has its last token."""
        number = int(finish.id)
        request, at_s = self._open.pop(number), finish.at_s
        self._count(-1, at_s)
        first_s, last_s = finish.first_token_s, finish.last_token_s
        assert first_s is not None, "a finished request has a first token"
        assert last_s is not None, "and a last one"
        assert request.sent_s is not None, "and was sent"
        records, tokens = self.records, finish.output_tokens
        records.ttft_s.append(first_s - request.arrived_s)
        records.tpot_s.append((last_s - first_s) / (tokens - 1) if tokens > 1 else 0.0)
        records.e2e_s.append(at_s - request.arrived_s)
        records.held_s.append(request.sent_s - request.arrived_s)
        records.input_tokens += finish.prompt_tokens
        records.output_tokens += tokens
        self._apply(self.gateway.complete(number, at_s), at_s)
        self._go_on(request, at_s)
        self.told(at_s)

    def _apply(self, effects: Sequence[holding.Effect], now_s: float) -> None:
        for effect in effects:
            if isinstance(effect, holding.Send):
                self._send(effect, now_s)
                continue
            request = self._open.pop(effect.request_id)
            self.gateway.forget(effect.request_id)
            self._count(-1, now_s)
            if effect.refusal is holding.Refusal.EXPIRED:
                self.records.expired += 1
            else:
                self.records.refused += 1
            self._go_on(request, now_s)

    def _send(self, effect: holding.Send, now_s: float) -> None:
        request = self._open[effect.request_id]
        request.sent_s, request.pod_uid = now_s, effect.pod_uid
        asked = CoreRequest(str(effect.request_id), request.input_tokens, request.output_tokens)
        try:
            self.deployment.replicas[effect.pod_uid].submit(asked, now_s)
        except errors.ModelServeError:
            self._lose(effect.request_id, now_s)
            self.records.failed += 1

    def _lose(self, number: int, now_s: float) -> None:
        request = self._open.pop(number)
        self._count(-1, now_s)
        self._apply(self.gateway.drop(number, now_s), now_s)
        self._go_on(request, now_s)

    def _count(self, change: int, now_s: float) -> None:
        """One request more is open, or one less."""
        self.records.open_s += self._counted * (now_s - self._counted_s)
        self._counted, self._counted_s = self._counted + change, now_s

    def _go_on(self, request: Request, now_s: float) -> None:
        """A client of a closed loop sends its next request."""
        client = request.client
        if not isinstance(client, Client):
            return
        following = client.next_arrival(now_s)
        if following is not None:
            self.begin(client, following)

    def begin_loop(self, client: Client, begin_s: float) -> None:
        """A client of a closed loop sends its first request then, if it has the time."""
        first = client.next_arrival(begin_s - client.think_s)
        if first is not None:
            self.begin(client, first)

    def begin(self, client: Client, arrival: Arrival) -> None:
        """A client of a closed loop sends this."""
        self.place.agenda.at(
            arrival.at_s, Turn.ARRIVAL, lambda now_s: self.arrive(arrival, client, now_s)
        )

    def _watch_gateway(self, now_s: float) -> None:
        """Be there when a hold expires or a fence lapses."""
        wake_s = self.gateway.next_wake()
        self._expiry_s = math.inf if wake_s is None else max(wake_s, now_s) + LATE_S
        self.place.agenda.at(self._expiry_s, Turn.LIFE, self._advance_gateway)

    def _advance_gateway(self, now_s: float) -> None:
        if now_s == self._expiry_s:
            self._apply(self.gateway.advance(now_s), now_s)
            self._watch_gateway(now_s)
            self.told(now_s)

    def fence(self, fence_id: str, uids: Sequence[str], now_s: float) -> bool:
        """Ask the gateways; granted only if nothing is held nor under way to these."""
        granted = self.gateway.fence(fence_id, uids, now_s)
        self._watch_gateway(now_s)
        return granted

    def unfence(self, fence_id: str, now_s: float) -> None:
        """Take it back."""
        self._apply(self.gateway.unfence(fence_id, now_s), now_s)

    def deal(self, now_s: float) -> None:
        """Deal out the slots to several gateways."""
        if self.gateway.several:
            self._apply(self.gateway.deal(now_s), now_s)

    @property
    def serving(self) -> bool:
        """Whether any replica is ready."""
        steps = self.deployment.ledger.ready
        return bool(steps) and steps[-1][1] > 0

    @property
    def open(self) -> int:
        """Requests that are not over."""
        return len(self._open)

    # --- what pods tell ---------------------------------------------------------------------------

    def routed(self, replicas: Iterable[fleet.Replica], now_s: float) -> None:
        """The replicas as gateways see them are others."""
        self._apply(self.gateway.update(replicas, now_s), now_s)

    def lost(self, replica: Replica, now_s: float) -> None:
        """Its engine is gone, with the requests that it had."""
        lost = [n for n, r in self._open.items() if r.pod_uid == replica.uid]
        for number in lost:
            self._lose(number, now_s)
        self.records.cut += len(lost)

    def changed(self, now_s: float) -> None:
        """An operator would want to look."""
        self.on_change(now_s)
