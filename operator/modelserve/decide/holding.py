"""Holding: what a gateway does with the requests of one model, as a state machine without I/O.

Requests queue in order of arrival and go to the least loaded replica with room. Each call takes
an input and the time, and returns effects for the caller to carry out; ``next_wake`` says when
``advance`` wants to be called. All times are real seconds on one monotonic clock.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from modelserve.api import wire
from modelserve.decide import fences, fleet, recent, shares, waiting

# A request whose connection was reset this often is not sent again: it may be what kills engines.
MAX_RESETS = 3


class Refusal(StrEnum):
    """Why a request ends without an engine; the value is the error code clients see."""

    FULL = "hold_full"
    EXPIRED = "hold_expired"
    SCALED_TO_ZERO = "scaled_to_zero"
    DELETED = "model_not_found"
    STALLED = "model_not_servable"
    LOST = "engine_lost"
    STOPPING = "gateway_stopping"


@dataclass(frozen=True, slots=True)
class Terms:
    """What the spec allows. ``closed`` is set while no request is accepted at all."""

    slots: int = 32
    max_requests: int = 1000
    max_bytes: int = 256 * 1024**2
    max_real_s: float = 600.0
    closed: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Send:
    """Send this request to this pod now."""

    request_id: int
    pod_uid: str


@dataclass(frozen=True, slots=True)
class Reject:
    """End this request with an error."""

    request_id: int
    refusal: Refusal


Effect = Send | Reject
NOTHING: tuple[Effect, ...] = ()


class Holding:
    """The held and in-flight requests of one model at one gateway."""

    def __init__(
        self, terms: Terms, time_scale: float = 1.0, share_due_real_s: float | None = None
    ) -> None:
        """Until ``share_due_real_s`` the operator is expected to deal this gateway its share.

        Other gateways may have all the room there is, so it sends one at a time to each replica.
        """
        self.terms = terms
        self.share: int | None = None
        self._share_due_real_s = share_due_real_s
        self.arrivals = 0
        self.completions = 0
        self.service_sum_s = 0.0  # emulated
        self._time_scale = time_scale
        self._fleet = fleet.Fleet()
        self._fences = fences.Fences()
        self._refused = recent.RecentCount(wire.REFUSED_WINDOW_REAL_S)
        self._stopping = False
        self._line = waiting.Line()
        self._flying: dict[int, waiting.Request] = {}

    # --- what happens -----------------------------------------------------------------------------

    def arrive(self, request_id: int, size_bytes: int, now_real_s: float) -> Sequence[Effect]:
        """A request came in: it is sent, held or rejected."""
        if closed := self.closed:
            return (Reject(request_id, closed),)
        request = waiting.Request(request_id, self.arrivals, size_bytes, now_real_s)
        if not self.held and (uid := self._pick()) is not None:
            self.arrivals += 1
            return (self._send(request, uid, now_real_s),)
        if self._is_full(size_bytes):
            self._refused.add(now_real_s)
            return (Reject(request_id, Refusal.FULL),)
        self.arrivals += 1
        self._line.join(request)
        return self._release(now_real_s)

    def complete(self, request_id: int, now_real_s: float) -> Sequence[Effect]:
        """Its answer has been relayed to the last byte."""
        request = self._flying.get(request_id)
        if request is not None:
            self.completions += 1
            self.service_sum_s += (now_real_s - request.since_real_s) * self._time_scale
        return self.drop(request_id, now_real_s)

    def drop(self, request_id: int, now_real_s: float) -> Sequence[Effect]:
        """It failed, or its client has gone; no matter where it was. Unknown ids are left aside."""
        if self._line.remove(request_id) is not None:
            return NOTHING
        request = self._flying.pop(request_id, None)
        if request is None:
            return NOTHING
        self._fleet.give_back(request.pod_uid)
        return self._release(now_real_s)

    def bounce(self, request_id: int, now_real_s: float, *, reached: bool) -> Sequence[Effect]:
        """Its connection was refused, or (``reached``) reset before the first byte: try elsewhere.

        It goes back to its place in the queue, past the hold's bounds if need be.
        """
        request = self._flying.pop(request_id, None)
        if request is None:
            return NOTHING
        self._fleet.give_back(request.pod_uid)
        self._fleet.distrust(request.pod_uid)
        request.resets += reached
        refusal = Refusal.LOST if request.resets >= MAX_RESETS else self.closed
        if refusal:
            return (Reject(request_id, refusal), *self._release(now_real_s))
        request.since_real_s = now_real_s
        self._line.rejoin(request)
        return self._release(now_real_s)

    def update(
        self, terms: Terms, replicas: Iterable[fleet.Replica], now_real_s: float
    ) -> Sequence[Effect]:
        """The spec or the replicas changed."""
        self.terms = terms
        self._fleet.update(replicas)
        return self._settle(now_real_s)

    def admit(self, pod_uid: str, now_real_s: float) -> Sequence[Effect]:
        """A probe of this pod succeeded."""
        return self._release(now_real_s) if self._fleet.admit(pod_uid) else NOTHING

    def set_share(self, in_flight_per_replica: int, now_real_s: float) -> Sequence[Effect]:
        """The operator gave this gateway its share of each replica's slots; at least 1."""
        self.share, self._share_due_real_s = max(1, in_flight_per_replica), None
        return self._release(now_real_s)

    def fence(self, fence_id: str, pod_uids: Sequence[str], now_real_s: float) -> wire.FenceAnswer:
        """Promise to send these pods nothing, if nothing is held and nothing in flight to them."""
        self._fences.advance(now_real_s)
        in_flight = self._fleet.load(pod_uids)
        granted = not self.held and not in_flight
        if granted:
            self._fences.grant(fence_id, pod_uids, now_real_s)
        return wire.FenceAnswer(granted, self.held, in_flight)

    def unfence(self, fence_id: str, now_real_s: float) -> Sequence[Effect]:
        """The operator takes its fence back."""
        return self._release(now_real_s) if self._fences.lift(fence_id) else NOTHING

    def stop(self, now_real_s: float) -> Sequence[Effect]:
        """This gateway ends: everything held is rejected, and everything that still comes."""
        self._stopping = True
        return self._settle(now_real_s)

    def advance(self, now_real_s: float) -> Sequence[Effect]:
        """Time passed: fences lapse, holds expire, no share came."""
        lapsed = self._fences.advance(now_real_s)
        if self._share_due_real_s is not None and self._share_due_real_s <= now_real_s:
            self._share_due_real_s, lapsed = None, True
        effects: list[Effect] = []
        for request in self._line.waiting_since(now_real_s - self.terms.max_real_s):
            self._line.remove(request.request_id)
            self._refused.add(now_real_s)
            effects.append(Reject(request.request_id, Refusal.EXPIRED))
        return [*effects, *self._release(now_real_s)] if lapsed else effects

    # --- what is ----------------------------------------------------------------------------------

    @property
    def held(self) -> int:
        """Requests accepted and not sent."""
        return len(self._line)

    @property
    def held_bytes(self) -> int:
        """Bytes of the held requests' bodies."""
        return self._line.held_bytes

    @property
    def in_flight(self) -> int:
        """Requests sent and not ended, at all pods."""
        return len(self._flying)

    @property
    def cap(self) -> int:
        """Most requests in flight at one replica: the share, never over ceil(slots × 1.25).

        All of that for a gateway that nobody deals a share.
        """
        ceiling = shares.cap(self.terms.slots)
        awaited = 1 if self._share_due_real_s is not None else ceiling
        return min(ceiling, awaited if self.share is None else self.share)

    @property
    def closed(self) -> Refusal | None:
        """Why nothing is accepted, if so."""
        return Refusal.STOPPING if self._stopping else self.terms.closed

    @property
    def admitted(self) -> tuple[str, ...]:
        """UIDs of pods that a probe found ready before Kubernetes did."""
        return self._fleet.admitted

    def replica(self, pod_uid: str) -> fleet.Replica | None:
        """The replica with this UID, while it is there."""
        return self._fleet.get(pod_uid)

    def probe_targets(self) -> frozenset[str]:
        """UIDs of the pods to probe every ``wire.PROBE_PERIOD_REAL_S``."""
        return self._fleet.probe_targets(self.held > 0)

    def next_wake(self) -> float | None:
        """When ``advance`` has something to do, in real seconds."""
        times = [self._fences.next_wake(), self._share_due_real_s]
        if (since := self._line.oldest_since_real_s()) is not None:
            times.append(since + self.terms.max_real_s)
        return min((t for t in times if t is not None), default=None)

    def demand(self, namespace: str, name: str, now_real_s: float) -> wire.ModelDemand:
        """The figures for the operator."""
        since = self._line.oldest_since_real_s()
        return wire.ModelDemand(
            namespace,
            name,
            self.held,
            0.0 if since is None else max(0.0, now_real_s - since),
            self._refused.total(now_real_s),
            dict(self._fleet.in_flight),
            self.admitted,
            self.arrivals,
            self.completions,
            self.service_sum_s,
            self._fences.newest_id,
        )

    # --- how --------------------------------------------------------------------------------------

    def _pick(self) -> str | None:
        return self._fleet.pick(self.cap, self._fences.barred())

    def _is_full(self, size_bytes: int) -> bool:
        return (
            self.held >= self.terms.max_requests
            or self._line.held_bytes + size_bytes > self.terms.max_bytes
        )

    def _send(self, request: waiting.Request, pod_uid: str, now_real_s: float) -> Send:
        request.pod_uid = pod_uid
        request.since_real_s = now_real_s
        self._flying[request.request_id] = request
        self._fleet.take(pod_uid)
        return Send(request.request_id, pod_uid)

    def _release(self, now_real_s: float) -> Sequence[Effect]:
        """Send held requests, first come first served, while a replica has room."""
        if not self.held:
            return NOTHING
        effects: list[Effect] = []
        while self.held and (uid := self._pick()) is not None:
            effects.append(self._send(self._line.pop(), uid, now_real_s))
        return effects

    def _settle(self, now_real_s: float) -> Sequence[Effect]:
        if not (closed := self.closed):
            return self._release(now_real_s)
        return [Reject(request.request_id, closed) for request in self._line.clear()]
