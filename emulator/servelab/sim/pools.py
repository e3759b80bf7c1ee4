"""The pools of a run: nodes that stand, and nodes that come when pods wait and go when idle.

How an elastic pool grows and shrinks is ``node.pools.growth``'s to say, as on a cluster; here its
plan is carried out on the virtual clock, and machines come with what a GPUPool's are.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from modelserve import ports
from modelserve.api import names, quantities
from modelserve.catalog import gpus
from modelserve.catalog import images as catalogue
from modelserve.decide import nodefacts
from servelab.node.faults import troubles
from servelab.node.machines import images
from servelab.node.pods import planning
from servelab.node.pools import elastic, growth, registration
from servelab.node.rules import amounts
from servelab.sim import scenario, suiting
from servelab.sim.agenda import Agenda, Turn
from servelab.sim.moves import Moves
from servelab.sim.nodes import Node, Nodes
from servelab.sim.outages import Outages
from servelab.sim.suiting import Wish
from servelab.timing import caches

_READY = [{"type": "Ready", "status": "True"}]


@dataclass(slots=True, eq=False)
class Pool:
    """One pool: what it says, and how its nodes come and go."""

    spec: scenario.Pool
    gpu: gpus.Gpu
    annotations: Mapping[str, str]
    shape: elastic.Shape  # of its nodes, but for their names
    growing: growth.Growth = field(default_factory=growth.Growth)
    nodes: dict[str, Node] = field(default_factory=dict)
    coming: dict[str, float] = field(default_factory=dict)  # GPUs of nodes that are up, from then
    due_s: float = math.inf

    def provisioning_s(self) -> float:
        """How long one more takes; 0 where none comes."""
        usable = sum(node.advertised and not node.cordoned for node in self.nodes.values())
        return registration.provisioning_s(self.spec, usable)


class Pools:
    """All of them. ``pods`` tells of every pod, bound or not; ``freed`` that GPUs may be free."""

    def __init__(
        self,
        given: Iterable[scenario.Pool],
        nodes: Nodes,
        agenda: Agenda,
        moves: Moves,
        seed: int,
    ) -> None:
        self.pods: Callable[[], Sequence[ports.Object]] = list
        self.freed: Callable[[float], None] = lambda now_s: None
        self.gpu_s = 0.0  # of nodes that are gone
        self._nodes = nodes
        self._agenda = agenda
        self._moves = moves
        self._seed = seed
        self._start_s = agenda.now_s
        self._outages = Outages(agenda, nodes, self._gone, lambda now_s: self.freed(now_s))
        self._pools = [_pool(spec) for spec in given]
        self._suiting: dict[Wish, list[Pool]] = {}
        self.elastic = any(pool.spec.elastic is not None for pool in self._pools)
        for pool in self._pools:
            self._stand(pool, agenda.now_s)

    @property
    def gpus(self) -> int:
        """All GPUs there can be."""
        return sum(pool.spec.gpus_per_node * pool.spec.node_most for pool in self._pools)

    def provisioning_s(self, wish: Wish) -> float | None:
        """How long another node takes, as those that suit tell; None while there are none."""
        found = self._suiting.get(wish)
        if found is None:
            found = self._suiting[wish] = [p for p in self._pools if wish.suits_pool(p.spec)]
        told = [
            pool.provisioning_s()
            for pool in found
            if any(node.advertised for node in pool.nodes.values())
        ]
        return max(told, default=None)

    def annotations(self, name: str) -> Mapping[str, str]:
        """What another node of that pool would say of itself."""
        return next(pool.annotations for pool in self._pools if pool.spec.name == name)

    def review(self, now_s: float) -> None:
        """Pods came, went, or wait: elastic pools look whether nodes have to come or may go."""
        for pool in self._pools if self.elastic else ():
            if pool.spec.elastic is not None:
                self._review(pool, now_s)

    def close(self, now_s: float) -> None:
        """The run is over: count what stood until now."""
        for node in list(self._nodes):
            self.gpu_s += node.gpus * (now_s - node.came_s)

    def _review(self, pool: Pool, now_s: float) -> None:
        name, spec = pool.spec.name, pool.spec
        shown = [_shown(pool, node) for node in pool.nodes.values()]
        pods = self.pods()
        plan = pool.growing.plan(name, spec, pool.gpu, shown, pods, now_s, 1.0)
        always = dict.fromkeys(registration.node_names(name, spec))
        wanted = always | pool.growing.standing(name, spec, plan, shown, pods)
        for node_name, devices_s in wanted.items():
            if node_name not in pool.nodes:
                self._come(pool, node_name, now_s, devices_s)
        for gone in sorted({node["metadata"]["name"] for node in plan.go} - wanted.keys()):
            self._gone(pool.nodes[gone], now_s)
        self._wake(pool, min([plan.due_s, *pool.coming.values()]))

    def _wake(self, pool: Pool, at_s: float) -> None:
        if at_s < pool.due_s or pool.due_s <= self._agenda.now_s:
            pool.due_s = at_s
            self._agenda.at(at_s, Turn.LIFE, lambda now_s: self._woken(pool, now_s))

    def _woken(self, pool: Pool, now_s: float) -> None:
        """A machine is up, its GPUs are there, or a node has been idle for long enough."""
        if now_s < pool.due_s:
            return
        pool.due_s = math.inf
        for name in [name for name, at_s in pool.coming.items() if at_s <= now_s]:
            del pool.coming[name]
            if name in pool.nodes:
                pool.nodes[name].advertised = True
                self._nodes.changed()
        self.freed(now_s)
        self._review(pool, now_s)

    def _stand(self, pool: Pool, now_s: float) -> None:
        """The nodes that are always there."""
        for name in registration.node_names(pool.spec.name, pool.spec):
            if name not in pool.nodes:
                self._come(pool, name, now_s, None)

    def _come(self, pool: Pool, name: str, now_s: float, devices_s: float | None) -> None:
        """A machine is up; its GPUs come when their driver is."""
        node = self._machine(pool, name, now_s)
        if devices_s is not None and devices_s > now_s:
            node.advertised = False
            pool.coming[name] = devices_s
        pool.growing.booting.pop(name, None)
        pool.nodes[name] = node
        self._nodes.add(node)
        self._outages.watch(node, now_s)

    def _gone(self, node: Node, now_s: float) -> None:
        """A machine is off; another takes its place where the pool wants so many."""
        pool = next(each for each in self._pools if each.spec.name == node.pool)
        self.gpu_s += node.gpus * (now_s - node.came_s)
        del pool.nodes[node.name]
        pool.coming.pop(node.name, None)
        node.links.close(now_s)
        self._moves.drop(node.name)
        self._nodes.remove(node)
        self._stand(pool, now_s)
        self.freed(now_s)

    def _machine(self, pool: Pool, name: str, now_s: float) -> Node:
        spec, kubelet = pool.spec, pool.spec.kubelet
        moved = self._moves.links.of(name)
        shared = spec.registry.shared_bandwidth
        facts = planning.NodeFacts(
            pool.gpu,
            nodefacts.node_rates(pool.annotations),
            spec.name,
            quantities.parse_rate(shared) if shared else None,
            lambda: moved.warm,
        )
        low = kubelet.image_gc_low_threshold_percent
        store = images.NodeImages(
            moved,
            name,
            serialize=kubelet.serialize_image_pulls,
            cached_s=catalogue.pull_defaults().cached_s,
            disk_bytes=int(amounts.parse(spec.disk)),
            policy=caches.Policy(kubelet.image_gc_high_threshold_percent, low),
        )
        node = Node(
            name=name,
            pool=spec.name,
            shape=suiting.of_node(pool.shape, name),
            facts=facts,
            gpus=spec.gpus_per_node,
            memory_bytes=int(amounts.parse(spec.memory)),
            came_s=now_s,
            images=store,
            links=moved,
            trouble=self._trouble(spec, name, now_s),
        )
        moved.remember(node.room_bytes, lambda: None, {})
        return node

    def _trouble(self, spec: scenario.Pool, name: str, now_s: float) -> troubles.Troubles:
        """Its faults. Of nodes that were there first they count from the start of the traffic."""
        first = now_s <= self._start_s < 0
        said = [
            fault.model_copy(
                update={
                    "seed": (fault.seed + self._seed) % 2**31,
                    "after_seconds": fault.after_seconds - (now_s if first else 0.0)
                    if fault.after_seconds
                    else 0.0,
                }
            )
            for fault in spec.faults
        ]
        found = troubles.Troubles(name, 1.0, now_s)
        found.hear(said, spec.gpus_per_node)
        return found


def _pool(spec: scenario.Pool) -> Pool:
    said = {k: v for k, v in registration.render_annotations(spec).items() if v}
    return Pool(spec, gpus.find(spec.gpu), said, suiting.of_pool(spec))


def _shown(pool: Pool, node: Node) -> ports.Object:
    """The node as a cluster autoscaler sees it."""
    spec, name, there = pool.spec, node.name, node.advertised
    owner = {"metadata": {"name": spec.name}}
    at_s = None if there else pool.coming[name]
    shown = registration.render_node(owner, spec, name, pool.gpu, devices_at_s=at_s)
    if node.cordoned:
        shown["metadata"]["annotations"][names.GONE_AT] = "0"
    found = registration.allocatable(registration.capacity(spec, pool.gpu, advertised=there))
    rows = [] if node.dead else _READY
    return {**shown, "status": {"allocatable": found, "conditions": rows}}
