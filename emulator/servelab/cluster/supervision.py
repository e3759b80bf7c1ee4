"""Brings back what ended by itself, with pauses as a kubelet makes them, but shorter ones."""

from collections.abc import Callable, Sequence
from typing import Protocol

from modelserve import errors
from servelab.cluster import processes, releases
from servelab.node.kubelet import backoffs

PAUSE_FIRST_REAL_S = 1.0
PAUSE_MOST_REAL_S = 60.0
# Its data are the cluster. It syncs no file, so what a full or failing disk left is not trusted.
VITAL = releases.Component.ETCD


class Supervised(Protocol):
    """What a LocalCluster offers to its supervisor."""

    @property
    def running(self) -> Sequence[str]: ...

    @property
    def wanted(self) -> Sequence[str]:
        """Names of what was started and nobody stopped."""
        ...

    def deaths(self) -> Sequence[processes.Death]: ...

    def revive(self, name: str) -> None:
        """Start it again, without waiting until it serves. Raises SetUpError."""
        ...


class Supervisor:
    """Call ``look`` now and then. ``say`` gets what happened, for people."""

    def __init__(self, cluster: Supervised, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._say = say
        self._pauses = backoffs.Backoff(PAUSE_FIRST_REAL_S, PAUSE_MOST_REAL_S)
        self._put_off: set[str] = set()

    def look(self, now_real_s: float) -> None:
        """Take notice of deaths, and start again whose pause is over. SetUpError for etcd's."""
        for death in self._cluster.deaths():
            if death.name == VITAL:
                raise errors.SetUpError(f"{death.sentence()}\nstopped the local cluster")
            self._say(f"{death.sentence()}\n{self._ended(death.name, now_real_s)}")
        running = self._cluster.running
        for name in self._cluster.wanted:
            if name in running:
                self._put_off.discard(name)  # somebody was quicker
            elif name not in self._put_off:
                self._say(self._ended(name, now_real_s))
            elif not self._pauses.holds_since_update(name, now_real_s):
                self._revive(name, now_real_s)

    def _ended(self, name: str, now_real_s: float) -> str:
        """Decide when it is started again; says so."""
        self._pauses.failed(name, now_real_s, now_real_s)
        self._put_off.add(name)
        pause_real_s = self._pauses.delay_real_s(name)
        return f"{name} is started again in {pause_real_s:.0f} s; the rest keeps running"

    def _revive(self, name: str, now_real_s: float) -> None:
        self._put_off.discard(name)
        try:
            self._cluster.revive(name)
        except errors.SetUpError as failure:
            self._say(f"{failure}\n{self._ended(name, now_real_s)}")
