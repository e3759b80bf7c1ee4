"""Cold starts on the virtual clock: the plan the operator predicts with, on links others use too.

Image pull, weights, warm-up, probe, as the node emulator plays them: the same routes over the same
links, the same jitter by the pod's UID and part.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from modelserve.api import wire
from modelserve.catalog import gpus
from modelserve.decide import coldstart, nodefacts
from modelserve.engines import types
from servelab.sim.agenda import Agenda, Turn
from servelab.sim.nodes import Node, Nodes
from servelab.timing import jitter, routes, shared

Ended = Callable[[float], None]


class Links:
    """Transfers of all cold starts; tells each when it ends."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self._shared = shared.Shared()
        self._ended: dict[str, Ended] = {}
        self._due_s = math.inf

    def start(self, key: str, route: routes.Route, now_s: float, ended: Ended) -> None:
        """Begin a transfer."""
        self._shared.declare(route.links, now_s)
        self._shared.start(key, route.work, now_s)
        self._ended[key] = ended
        self._set(now_s)

    def stop(self, key: str, now_s: float) -> None:
        """Give it up; unknown keys are fine."""
        if self._ended.pop(key, None) is not None:
            self._shared.stop(key, now_s)
            self._set(now_s)

    def _set(self, now_s: float) -> None:
        due_s = self._shared.next_end_s()
        if due_s != self._due_s:
            self._due_s = due_s
            self._agenda.at(due_s, Turn.LIFE, self._look)

    def _look(self, now_s: float) -> None:
        if now_s < self._due_s:
            return
        self._due_s = math.inf
        for key in self._shared.advance(now_s):
            ended = self._ended.pop(key, None)
            if ended is not None:
                self._shared.stop(key, now_s)
                ended(now_s)
        self._set(now_s)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is started: the launch, its GPU, and how the pod's parts are called."""

    launch: types.Launch
    gpu: gpus.Gpu

    @property
    def storage_class(self) -> str:
        """Where its weights come from, as links are named; empty where only a rate is known."""
        known = self.launch.storage_class
        return known.name if known is not None else ""


class ColdStart:
    """One pod on its node, from the bind to the engine's first answer.

    ``phase`` and ``since_s`` say where it is; ``took_s`` are the seconds of the parts so far.
    """

    def __init__(
        self,
        uid: str,
        recipe: Recipe,
        node: Node,
        nodes: Nodes,
        links: Links,
        agenda: Agenda,
        done: Ended,
    ) -> None:
        self.phase = wire.Phase.SCHEDULING
        self.since_s = agenda.now_s
        self.took_s: dict[wire.Phase, float] = {}
        self._uid = uid
        self._recipe = recipe
        self._node = node
        self._nodes = nodes
        self._links = links
        self._agenda = agenda
        self._done = done
        self._over = False
        cache = nodefacts.CacheState(image_present=recipe.launch.image in node.images)
        self._plan = coldstart.plan(recipe.launch, recipe.gpu, node.rates, cache)
        self.predicted = coldstart.predict(self._plan)

    def begin(self, now_s: float) -> None:
        """The scheduler takes a moment, then the kubelet starts."""
        self.since_s = now_s
        self._agenda.at(now_s + self.predicted.scheduling_s, Turn.LIFE, self._bound)

    def give_up(self, now_s: float) -> None:
        """The pod goes before it is ready."""
        self._over = True
        self._links.stop(self._weights_key, now_s)

    def expected_s(self, now_s: float) -> float:
        """When it should be ready by the prediction, from the phase it is in."""
        planned = self.planned_s
        order = list(planned)
        later_s = sum(planned[phase] for phase in order[order.index(self.phase) + 1 :])
        return max(now_s, self.since_s + planned[self.phase]) + later_s

    @property
    def planned_s(self) -> dict[wire.Phase, float]:
        """Predicted seconds by phase, in order."""
        found = self.predicted
        return {
            wire.Phase.SCHEDULING: found.scheduling_s,
            wire.Phase.IMAGE_PULL: found.image_pull_s,
            wire.Phase.WEIGHT_LOAD: found.weight_load_s,
            wire.Phase.WARM_UP: found.warm_up_s,
            wire.Phase.PROBE: found.probe_s,
        }

    @property
    def measured(self) -> coldstart.ColdStart:
        """The parts as they were; of one that is over."""
        took = self.took_s
        return coldstart.ColdStart(
            scheduling_s=took[wire.Phase.SCHEDULING],
            provisioning_s=0.0,
            image_pull_s=took[wire.Phase.IMAGE_PULL],
            weight_load_s=took[wire.Phase.WEIGHT_LOAD],
            warm_up_s=took[wire.Phase.WARM_UP],
            probe_s=took[wire.Phase.PROBE],
        )

    @property
    def _weights_key(self) -> str:
        return f"weights/{self._uid}"

    def _enter(self, phase: wire.Phase, now_s: float) -> bool:
        """Go on to the next phase; False if the pod is gone."""
        if self._over:
            return False
        self.took_s[self.phase] = now_s - self.since_s
        self.phase, self.since_s = phase, now_s
        return True

    def _bound(self, now_s: float) -> None:
        if not self._enter(wire.Phase.IMAGE_PULL, now_s):
            return
        image, node = self._recipe.launch.image, self._node
        if image in node.images:
            factor = jitter.factor(self._uid, "pull/engine")
            at_s = now_s + self._plan.pull.cached_s * factor
            self._agenda.at(at_s, Turn.LIFE, self._pulled)
            return
        waiting = node.arriving.setdefault(image, [])
        waiting.append(self._pulled)
        if len(waiting) == 1:
            self._pull(now_s)

    def _pull(self, now_s: float) -> None:
        image, node = self._recipe.launch.image, self._node
        factor = jitter.factor(self._uid, "pull/engine")
        route = routes.pull(self._plan.pull, node.name, factor=factor)

        def ended(at_s: float) -> None:
            self._nodes.keep(node, image)
            for each in node.arriving.pop(image):
                each(at_s)

        # The runtime finishes a pull that it began, whoever asked for it is still there or not.
        self._links.start(f"pull/{node.name}/{image}", route, now_s, ended)

    def _pulled(self, now_s: float) -> None:
        if not self._enter(wire.Phase.WEIGHT_LOAD, now_s):
            return
        factor = jitter.factor(self._uid, wire.Phase.WEIGHT_LOAD)
        route = routes.weights(
            self._plan.weights,
            self._node.name,
            self._recipe.storage_class,
            connections=self._recipe.launch.tensor_parallel,
            factor=factor,
        )
        self._links.start(self._weights_key, route, now_s, self._loaded)

    def _loaded(self, now_s: float) -> None:
        if not self._enter(wire.Phase.WARM_UP, now_s):
            return
        factor = jitter.factor(self._uid, wire.Phase.WARM_UP)
        self._agenda.at(now_s + self._plan.warm_up_s * factor, Turn.LIFE, self._warm)

    def _warm(self, now_s: float) -> None:
        if self._enter(wire.Phase.PROBE, now_s):
            self._agenda.at(now_s + self.predicted.probe_s, Turn.LIFE, self._probed)

    def _probed(self, now_s: float) -> None:
        if self._enter(wire.Phase.STARTED, now_s):
            self._done(now_s)
