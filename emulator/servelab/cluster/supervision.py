"""Brings back what ended by itself, with pauses as of Kubernetes' CrashLoopBackOff."""

from collections.abc import Callable, Sequence
from typing import Protocol

from modelserve import errors
from servelab.cluster import processes, releases

PAUSE_FIRST_REAL_S = 1.0
PAUSE_MOST_REAL_S = 60.0
# Whoever ran for so long ended for another reason than the last time: the kubelet's rule, too.
HEALTHY_REAL_S = 2 * PAUSE_MOST_REAL_S
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
        self._due_real_s: dict[str, float] = {}
        self._pauses_real_s: dict[str, float] = {}  # the last one of each
        self._begun_real_s: dict[str, float] = {}

    def look(self, now_real_s: float) -> None:
        """Take notice of deaths, and start again whose pause is over. SetUpError for etcd's."""
        for death in self._cluster.deaths():
            if death.name == VITAL:
                raise errors.SetUpError(f"{death.sentence()}\nstopped the local cluster")
            self._say(f"{death.sentence()}\n{self._put_off(death.name, now_real_s)}")
        running = self._cluster.running
        for name in self._cluster.wanted:
            if name in running:
                self._due_real_s.pop(name, None)  # somebody was quicker
                self._begun_real_s.setdefault(name, now_real_s)
            elif name not in self._due_real_s:
                self._say(self._put_off(name, now_real_s))
            elif self._due_real_s[name] <= now_real_s:
                self._revive(name, now_real_s)

    def _put_off(self, name: str, now_real_s: float) -> str:
        """Decide when it is started again; says so."""
        ran_real_s = now_real_s - self._begun_real_s.pop(name, now_real_s)
        last_real_s = self._pauses_real_s.get(name, 0.0) if ran_real_s < HEALTHY_REAL_S else 0.0
        pause_real_s = min(PAUSE_MOST_REAL_S, 2 * last_real_s) or PAUSE_FIRST_REAL_S
        self._pauses_real_s[name] = pause_real_s
        self._due_real_s[name] = now_real_s + pause_real_s
        return f"{name} is started again in {pause_real_s:.0f} s; the rest keeps running"

    def _revive(self, name: str, now_real_s: float) -> None:
        del self._due_real_s[name]
        try:
            self._cluster.revive(name)
        except errors.SetUpError as failure:
            self._say(f"{failure}\n{self._put_off(name, now_real_s)}")
        else:
            self._begun_real_s[name] = now_real_s
