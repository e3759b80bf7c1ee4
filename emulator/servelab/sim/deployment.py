"""The pods of one model as its Deployment keeps them: made, placed, deleted, replaced."""

import dataclasses
import random
from collections.abc import Iterable, Sequence
from typing import Protocol

from modelserve import ports
from modelserve.api.spec import ModelServeSpec
from modelserve.decide import coldstart, fleet, prediction, victims
from servelab.engine import assembly
from servelab.engine.core.laws import StepLaw
from servelab.engine.core.sequences import Finish
from servelab.engine.core.stepping import EngineCore
from servelab.sim.ailing import Ailing
from servelab.sim.nodes import Node
from servelab.sim.place import Ledger, Place
from servelab.sim.pods import Template
from servelab.sim.replicas import Replica, Stage
from servelab.sim.slowness import Slowed
from servelab.sim.starting import ColdStart, Recipe


class Model(Protocol):
    """Who hears of the pods."""

    def finished(self, replica: Replica, finish: Finish) -> None:
        """A request has its last token, at ``finish.at_s``."""

    def lost(self, replica: Replica, now_s: float) -> None:
        """Its engine is gone, with the requests that it had."""

    def routed(self, replicas: Iterable[fleet.Replica], now_s: float) -> None:
        """The replicas as gateways see them are others."""

    def changed(self, now_s: float) -> None:
        """An operator would want to look."""


class Deployment:
    """Of one model. ``count`` is what was written last."""

    def __init__(
        self,
        name: str,
        spec: ModelServeSpec,
        assessment: prediction.Assessment,
        place: Place,
        model: Model,
    ) -> None:
        self.name = name
        self.replicas: dict[str, Replica] = {}
        self.count = 0
        self.ledger = Ledger()
        self._drain_s = spec.drain_seconds
        self._place = place
        self._model = model
        self._template = Template(name, spec, assessment)
        self.wish = self._template.wish
        launch, gpu = assessment.launch, assessment.gpu
        self.recipe = Recipe(launch, gpu, self._template.image)
        engine = assembly.from_launch(launch, gpu, place.seed, place.step_jitter)
        # Traces say how long prompts are, not what is in them: no two share a prefix.
        self._config = dataclasses.replace(engine.config, prefix_caching=False)
        self._law: StepLaw = engine.law
        self._ailing: dict[str, Ailing] = {}
        self._made = 0
        self._homeless = False  # whether any pod waits for a node
        self._started: list[coldstart.ColdStart] = []

    # --- what an operator does --------------------------------------------------------------------

    def scale(self, count: int, going: Iterable[str], now_s: float) -> None:
        """Write the count: replicas are made, or of those there are the first of ``going`` leave.

        As with a ReplicaSet, ``going`` (which may be short) is followed by its own order.
        """
        if count != self.count:
            self.ledger.writes += 1
        self.count = count
        self.ledger.counts.append((now_s, count))
        staying = {uid: each for uid, each in self.replicas.items() if not each.terminating}
        if count < len(staying):
            observed = [each.observed(0, now_s) for each in staying.values()]
            # One that was to go may be gone already.
            first = (uid for uid in going if uid in staying)
            order = [*first, *(r.uid for r in victims.order(observed, (), {}))]
            for uid in list(dict.fromkeys(order))[: len(staying) - count]:
                staying[uid].terminate(self._drain_s, now_s)
            self._route(now_s)
        for _ in range(count - len(staying)):
            self._make(now_s)
        self.schedule(now_s)
        living = sum(not each.terminating for each in self.replicas.values())
        self.ledger.peak = max(self.ledger.peak, living)

    def delete(self, uid: str, now_s: float) -> None:
        """Delete one pod; the ReplicaSet makes another."""
        self.replicas[uid].terminate(self._drain_s, now_s)
        self.scale(self.count, (), now_s)
        self._route(now_s)

    def mark(self, costs: dict[str, int], now_s: float) -> None:
        """Write pod deletion costs: gateways send nothing to those below 0."""
        for uid, cost in costs.items():
            replica = self.replicas[uid]
            replica.deletion_cost, replica.leaving = cost, cost < 0
        self._route(now_s)

    def take_cold_starts(self) -> Sequence[coldstart.ColdStart]:
        """Those that are over since the last call."""
        taken, self._started = self._started, []
        return taken

    # --- what becomes of pods ---------------------------------------------------------------------

    def _make(self, now_s: float) -> None:
        self._made += 1
        self._homeless = True
        uid = f"{self.name}-{self._made}"
        template = self._template
        self.replicas[uid] = Replica(
            uid, template.image, template.memory_bytes, self, self._place.agenda, now_s
        )

    def schedule(self, now_s: float) -> None:
        """Find nodes for those that wait, oldest first."""
        if not self._homeless:
            return
        self._homeless, refused = False, False
        for replica in self.replicas.values():
            if replica.stage is not Stage.PENDING or replica.terminating:
                continue
            node = self._place.nodes.place(self.wish, replica)
            if node is not None:
                self._bind(replica, node, now_s)
                continue
            self._homeless = True
            if replica.unschedulable_s is None:
                replica.unschedulable_s, refused = now_s, True
        if refused:
            self._place.pools.review(now_s)

    def _bind(self, replica: Replica, node: Node, now_s: float) -> None:
        place = self._place
        uid = f"{place.seed}/{replica.uid}"
        start = ColdStart(uid, self.recipe, node, place.moves, place.agenda, replica)
        if replica.unschedulable_s is not None:
            start.unplaced_s = now_s - replica.unschedulable_s
        replica.bind(node, start, now_s)
        self.ledger.cold_starts += 1
        if node.trouble.said or self._template.annotated:
            pod = self._template.bound(replica.uid, node.name, place.seed)
            faults, _ = node.trouble.of_pod(pod, now_s)
            self._ailing[replica.uid] = ailing = Ailing(replica, faults, place.agenda)
            ailing.turn(now_s)
        if node.cut_off:
            replica.cut(off=True, now_s=now_s)
        start.begin(now_s)

    def engine_for(self, replica: Replica) -> EngineCore:
        """A new engine, which is about to serve."""
        law, ailing = self._law, self._ailing.get(replica.uid)
        if ailing is not None:
            law = ailing.law = Slowed(law)
        rng = random.Random(f"{self._place.seed}/{replica.uid}/steps")
        return EngineCore(self._config, law, rng)

    def served(self, replica: Replica, now_s: float) -> None:
        """Its engine answers, for the first time or again."""
        start = replica.start
        assert start is not None, "it has just started"
        if replica.uid in self._ailing:
            self._ailing[replica.uid].served(now_s)
        if not start.told:
            start.told = True
            self._started.append(start.measured)
            self.ledger.measured.append(start.measured)
            self.ledger.cold_start_s.append(now_s - replica.created_s)
        self.turned(replica, now_s)

    def turned(self, replica: Replica, now_s: float) -> None:
        """It is ready, or no longer; or its container has ended."""
        if replica.core is None and replica.open:
            replica.open = 0
            self._model.lost(replica, now_s)
        self._route(now_s)
        self._model.changed(now_s)

    def finished(self, replica: Replica, finish: Finish) -> None:
        """A request has its last token, at ``finish.at_s``."""
        self._model.finished(replica, finish)

    def evicted(self, replica: Replica, now_s: float) -> None:
        """It is to be deleted, for its node's sake."""
        self.delete(replica.uid, now_s)
        self._model.changed(now_s)

    def drained(self, replica: Replica, now_s: float) -> None:
        """A terminating replica is gone, with what its grace did not suffice for."""
        if replica.open:
            self._model.lost(replica, now_s)
        replica.end(now_s)
        del self.replicas[replica.uid]
        self._ailing.pop(replica.uid, None)
        self._account(replica, now_s)
        self._route(now_s)
        if replica.node is not None:
            self._place.nodes.give_back(replica.node, self.wish.gpus, replica)
            self._place.pools.freed(now_s)
        self._place.pools.review(now_s)
        self._model.changed(now_s)

    def arrived(self, node: Node, now_s: float) -> None:
        """The node has an image, or weights in its memory, that it did not have."""
        self._place.nodes.changed()
        self._place.sweep(node)

    # --- what others see --------------------------------------------------------------------------

    def pods(self) -> Iterable[ports.Object]:
        """As the API server shows them."""
        for replica in self.replicas.values():
            node = replica.node.name if replica.node is not None else ""
            refused = replica.unschedulable_s is not None and not replica.terminating
            yield self._template.raw(replica.uid, node, replica.created_s, refused=refused)

    def catch_up(self, now_s: float) -> None:
        """Bring every engine's figures up to now."""
        for replica in list(self.replicas.values()):
            replica.catch_up(now_s)

    def close(self, now_s: float) -> None:
        """The run is over: account for what is still there."""
        for replica in self.replicas.values():
            replica.end(now_s)
            self._account(replica, now_s)
        self.replicas.clear()

    def _account(self, replica: Replica, now_s: float) -> None:
        if replica.bound_s is not None:
            self.ledger.gpu_s += (now_s - replica.bound_s) * self.wish.gpus
            self.ledger.idle_gpu_s += replica.idle_s * self.wish.gpus

    def _route(self, now_s: float) -> None:
        """Tell the gateways of the replicas as they are now."""
        self._model.routed([replica.routed() for replica in self.replicas.values()], now_s)
        ready = sum(r.ready and not r.terminating for r in self.replicas.values())
        steps = self.ledger.ready
        if not steps or steps[-1][1] != ready:
            steps.append((now_s, ready))
