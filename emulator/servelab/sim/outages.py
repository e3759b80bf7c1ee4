"""What befalls nodes as a whole: lost, cut off, without GPUs, taken back by the cloud."""

import functools
from collections.abc import Callable

from modelserve.api.faults import FaultType as Type
from servelab.node.pools import draining
from servelab.sim.agenda import Agenda, Turn
from servelab.sim.nodes import Node, Nodes, Tenant

# A node controller's defaults: a silent node is thought dead after the one, and its pods are
# deleted after the other (node-monitor-grace-period, the tolerations every pod gets).
DEAD_AFTER_S, EVICTED_AFTER_S = 50.0, 300.0


class Outages:
    """Of all nodes. ``gone`` hears that a machine is off, ``freed`` that GPUs may be free."""

    def __init__(
        self,
        agenda: Agenda,
        nodes: Nodes,
        gone: Callable[[Node, float], None],
        freed: Callable[[float], None],
    ) -> None:
        self._agenda = agenda
        self._nodes = nodes
        self._gone = gone
        self._freed = freed

    def watch(self, node: Node, now_s: float) -> None:
        """It has come."""
        if node.trouble.own.entries:
            self._look(node, float("-inf"), now_s)

    def _look(self, node: Node, seen_s: float, now_s: float) -> None:
        if node not in self._nodes:
            return
        own = node.trouble.own
        later = functools.partial(self._look, node, now_s)
        self._agenda.at(own.next_change_s(now_s), Turn.LIFE, later)
        found = node.trouble.ailment(now_s)
        node.broken = round(node.gpus * found.gpus_gone)
        self._nodes.changed()
        if found.cut_off is not node.cut_off:
            self._cut(node, off=found.cut_off, now_s=now_s)
        spot = own.begun(Type.SPOT_RECLAIM, seen_s, now_s)
        if spot is not None:
            self._reclaim(node, spot.notice_s, now_s)
        self._freed(now_s)

    def _cut(self, node: Node, *, off: bool, now_s: float) -> None:
        node.cut_off = off
        node.outages += 1
        for tenant in _tenants(node):
            tenant.cut(off=off, now_s=now_s)
        if off:
            dead = functools.partial(self._dead, node, node.outages)
            self._agenda.at(now_s + DEAD_AFTER_S, Turn.LIFE, dead)
        elif node.dead:
            node.dead = False
            self._nodes.changed()
        for tenant in () if off else _tenants(node):
            tenant.judge(alive=True, now_s=now_s)

    def _dead(self, node: Node, outage: int, now_s: float) -> None:
        """The node controller gives it up: no new pods, and requests for those that are there."""
        if node.cut_off and node.outages == outage and node in self._nodes:
            node.dead = True
            self._nodes.changed()
            for tenant in _tenants(node):
                tenant.judge(alive=False, now_s=now_s)
            evict = functools.partial(self._evict, node, outage)
            self._agenda.at(now_s + EVICTED_AFTER_S, Turn.LIFE, evict)

    def _evict(self, node: Node, outage: int, now_s: float) -> None:
        if node.dead and node.outages == outage:
            for tenant in _tenants(node):
                tenant.evict(now_s)

    def _reclaim(self, node: Node, notice_s: float, now_s: float) -> None:
        """Cordoned at once and emptied, and gone when the notice is over."""
        node.cordoned = True
        self._nodes.changed()
        ends_s = now_s + max(notice_s, draining.SETTLE_REAL_S)
        self._agenda.at(ends_s, Turn.LIFE, functools.partial(self._off, node))
        for tenant in _tenants(node):
            tenant.evict(now_s)

    def _off(self, node: Node, now_s: float) -> None:
        if node in self._nodes:
            for tenant in _tenants(node):
                tenant.vanish(now_s)
            self._gone(node, now_s)


def _tenants(node: Node) -> list[Tenant]:
    return list(node.tenants.values())
