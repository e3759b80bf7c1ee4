"""The replicas of one model as a gateway sees them: who may get the next request.

Usable is a replica that Kubernetes says is ready, or that a probe of ours found ready before that,
and that is not leaving. A replica that refused a connection is suspect, whatever Kubernetes says,
until a probe succeeds.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Replica:
    """One engine pod. ``leaving``: terminating, or marked by a negative pod deletion cost."""

    uid: str
    ready: bool = False
    leaving: bool = False
    terminating: bool = False
    name: str = ""
    address: str = ""  # host:port to dial; empty while there is none
    health_path: str = "/health"


class Fleet:
    """Replicas and how many requests this gateway has in flight at each."""

    def __init__(self) -> None:
        self._replicas: dict[str, Replica] = {}
        self._admitted: set[str] = set()
        self._suspect: set[str] = set()
        self._last_turn: dict[str, int] = {}
        self._turn = 0
        # Also of pods that are gone from the API: their requests may still run.
        self.in_flight: dict[str, int] = {}

    def update(self, replicas: Iterable[Replica]) -> None:
        """Take the state of the world; what is not listed is gone."""
        self._replicas = {replica.uid: replica for replica in replicas}
        staying = {r.uid for r in self._replicas.values() if not r.leaving}
        ready = {r.uid for r in self._replicas.values() if r.ready}
        # Once Kubernetes has called it ready, its word counts again, also when it takes it back.
        self._admitted &= staying - ready
        self._suspect &= staying & ready
        self._last_turn = {u: t for u, t in self._last_turn.items() if u in self._replicas}

    def get(self, uid: str) -> Replica | None:
        """The replica with this pod UID, if it is there."""
        return self._replicas.get(uid)

    def admit(self, uid: str) -> bool:
        """A probe got its 200; True if that makes a difference."""
        replica = self._replicas.get(uid)
        if replica is None or replica.leaving or self.usable(uid):
            return False
        self._suspect.discard(uid)
        if not replica.ready:
            self._admitted.add(uid)
        return True

    def distrust(self, uid: str) -> None:
        """It refused or reset a connection: nothing more until a probe succeeds."""
        self._admitted.discard(uid)
        replica = self._replicas.get(uid)
        if replica is not None and replica.ready and not replica.leaving:
            self._suspect.add(uid)

    def usable(self, uid: str) -> bool:
        """Whether requests may go there, room aside."""
        replica = self._replicas.get(uid)
        return (
            replica is not None
            and not replica.leaving
            and bool(replica.address)
            and uid not in self._suspect
            and (replica.ready or uid in self._admitted)
        )

    def pick(self, cap: int, barred: Collection[str]) -> str | None:
        """The least loaded usable replica with fewer than ``cap`` in flight; ties take turns."""
        best: tuple[int, int] | None = None
        chosen: str | None = None
        for uid in self._replicas:
            load = self.in_flight.get(uid, 0)
            if load >= cap or uid in barred or not self.usable(uid):
                continue
            rank = (load, self._last_turn.get(uid, 0))
            if best is None or rank < best:
                best, chosen = rank, uid
        return chosen

    def take(self, uid: str) -> None:
        """Count one more in flight."""
        self._turn += 1
        self._last_turn[uid] = self._turn
        self.in_flight[uid] = self.in_flight.get(uid, 0) + 1

    def give_back(self, uid: str) -> None:
        """Count one less in flight."""
        left = self.in_flight[uid] - 1
        if left:
            self.in_flight[uid] = left
        else:
            del self.in_flight[uid]

    def load(self, uids: Iterable[str]) -> int:
        """Requests in flight at these pods; terminating ones count for nothing."""
        counted = (u for u in set(uids) if not self._is_terminating(u))
        return sum(self.in_flight.get(u, 0) for u in counted)

    def _is_terminating(self, uid: str) -> bool:
        replica = self._replicas.get(uid)
        return replica is not None and replica.terminating

    def probe_targets(self, holding: bool) -> frozenset[str]:
        """Pods to probe: suspect ones always, starting ones while requests are held."""
        starting = (
            r.uid
            for r in self._replicas.values()
            if holding and not (r.ready or r.leaving or r.uid in self._admitted) and r.address
        )
        return frozenset(self._suspect).union(starting)

    @property
    def admitted(self) -> tuple[str, ...]:
        """Pods a probe found ready before Kubernetes did."""
        return tuple(sorted(self._admitted))
