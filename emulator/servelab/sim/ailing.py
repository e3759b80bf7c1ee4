"""What befalls a pod while it lives: its engine hangs, is slow, or dies; its paths are slow."""

from modelserve.api.faults import FaultType as Type
from servelab.node.faults import fault
from servelab.sim.agenda import Agenda, Turn
from servelab.sim.replicas import Replica
from servelab.sim.slowness import Slowed

# Probes come once a second: the third that fails makes a pod unready, the first that succeeds
# makes it ready again, half a second later on average.
UNREADY_AFTER_S, READY_AFTER_S = 3.0, 0.5
_HANGS = (Type.HUNG_ENGINE, Type.NODE_LOST)
_KILLS = (Type.XID, Type.CRASH_LOOP)


class Ailing:
    """One pod with faults, from its bind on."""

    def __init__(self, replica: Replica, faults: fault.Faults, agenda: Agenda) -> None:
        self._replica = replica
        self._faults = faults
        self._agenda = agenda
        self._seen_s = agenda.now_s
        self._hung = False
        self.law: Slowed | None = None  # of its engine

    def turn(self, now_s: float) -> None:
        """Faults begin or end; also once it is bound."""
        replica, faults = self._replica, self._faults
        if replica.start is None or replica.node is None:
            return
        since_s, self._seen_s = self._seen_s, now_s
        self._agenda.at(faults.next_change_s(now_s), Turn.LIFE, self._if_there)
        replica.start.slow(faults, now_s)
        self.set_pace(now_s)
        self._hang(now_s)
        if any(faults.begun(kind, since_s, now_s) is not None for kind in _KILLS):
            replica.crash(now_s)

    def set_pace(self, now_s: float) -> None:
        """Let its engine be as slow as it has to be."""
        if self.law is not None:
            found = self._faults.holding(Type.SLOW_ENGINE, now_s)
            self.law.set(1.0 if found is None else found.factor)

    def served(self, now_s: float) -> None:
        """Its engine has just begun to serve."""
        self.set_pace(now_s)
        if self._hung:
            self._replica.hang(hung=True, now_s=now_s)
            self._replica.judge(alive=False, now_s=now_s)

    def _if_there(self, now_s: float) -> None:
        if self._replica.node is not None and self._replica.uid in self._replica.node.tenants:
            self.turn(now_s)

    def _hang(self, now_s: float) -> None:
        hung = any(self._faults.holding(kind, now_s) is not None for kind in _HANGS)
        if hung is not self._hung:
            self._hung = hung
            self._replica.hang(hung=hung, now_s=now_s)
            after_s = UNREADY_AFTER_S if hung else READY_AFTER_S
            self._agenda.at(now_s + after_s, Turn.LIFE, self._probe)

    def _probe(self, now_s: float) -> None:
        """The kubelet's verdict, if it can tell anybody."""
        node = self._replica.node
        if node is not None and not node.cut_off:
            self._replica.judge(alive=not self._hung and not node.dead, now_s=now_s)
