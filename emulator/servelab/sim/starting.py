"""Cold starts on the virtual clock: the plan the operator predicts with, on links others use too.

Image pull, weights, warm-up, probe, as the node emulator plays them: its image store and page
cache, the same routes over the same links, the same jitter by the pod's UID and part, the same
faults and back-offs.
"""

import functools
import math
from dataclasses import dataclass
from typing import Protocol

from modelserve.api import names, wire
from modelserve.api.faults import FaultType as Type
from modelserve.catalog import gpus, layers
from modelserve.decide import coldstart, nodefacts
from modelserve.engines import types
from servelab.node.faults import fault, words
from servelab.node.kubelet import backoffs, faulting, state, worker
from servelab.node.kubelet import starting as containers
from servelab.node.pods import planning
from servelab.node.rules import actions
from servelab.sim.agenda import Act, Agenda, Turn
from servelab.sim.moves import Moves
from servelab.sim.nodes import Node
from servelab.timing import jitter

# A kubelet's syncs after a failure come at this distance.
SYNC_S = worker.RETRY_REAL_S * worker.JITTER
_SLOW = {Type.SLOW_REGISTRY: actions.Path.REGISTRY, Type.SLOW_STORAGE: actions.Path.STORAGE}


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is started: the launch, its GPU, and the image by its full name."""

    launch: types.Launch
    gpu: gpus.Gpu
    image: str

    def cache(self, node: Node) -> nodefacts.CacheState:
        """What the node has for a start, as its Node tells: not what is still on its way."""
        present = self.image in node.images.names
        there = frozenset[str]() if present else nodefacts.listed_layers(node.images.listing())
        warm = node.facts.is_warm(self.launch)
        return nodefacts.CacheState(present, page_cached=warm, layers=there)

    def plan(self, node: Node, cache: nodefacts.CacheState | None = None) -> coldstart.Plan:
        """What a start on that node would take now."""
        known = self.cache(node) if cache is None else cache
        return coldstart.plan(self.launch, self.gpu, node.facts.rates, known)


class Pod(Protocol):
    """Who hears of a start."""

    def serve(self, now_s: float) -> None:
        """The engine answers."""

    def fell(self, now_s: float) -> None:
        """Its container has ended, or cannot be started; or is started again after that."""

    def arrived(self, node: Node, now_s: float) -> None:
        """The node has an image, or weights in its memory, that it did not have."""


class ColdStart:
    """One pod on its node, from the bind to the engine's first answer, and again after each end.

    ``phase`` and ``since_s`` say where it is; ``took_s`` are the seconds of the parts so far.
    ``broken``: it waits for a kubelet's back-off to be over.
    """

    def __init__(
        self, uid: str, recipe: Recipe, node: Node, moves: Moves, agenda: Agenda, pod: Pod
    ) -> None:
        self.phase = wire.Phase.SCHEDULING
        self.since_s = agenda.now_s
        self.took_s: dict[wire.Phase, float] = {}
        self.broken = False
        self.unplaced_s = 0.0  # it waited so long for a node with room
        self.told = False  # its first start is over and taken down
        self.faults = fault.NONE
        self._uid = uid
        self._recipe = recipe
        self._node = node
        self._moves = moves
        self._agenda = agenda
        self._pod = pod
        self._run = 0  # counts what has been begun and given up
        self._pulls = backoffs.Backoff()
        self._crashes = backoffs.Backoff()
        self._slowed: dict[actions.Path, float] = {}
        self._plan = recipe.plan(node)
        self.predicted = coldstart.predict(self._plan)
        self.predicted_s = self.predicted.total_s

    def begin(self, now_s: float) -> None:
        """The scheduler takes a moment, then the kubelet starts."""
        self.since_s = now_s
        self._at(now_s + self.predicted.scheduling_s, self._bound)

    def give_up(self, now_s: float) -> None:
        """The pod goes."""
        self._drop(now_s)
        self.slow(fault.NONE, now_s)

    def crash(self, now_s: float) -> None:
        """Its container has ended: another is started at once, or after the back-off."""
        if self.phase is wire.Phase.SCHEDULING or self.phase is wire.Phase.IMAGE_PULL:
            return
        self._drop(now_s)
        name, again_s = names.ENGINE_CONTAINER, now_s + state.RELIST_REAL_S
        self.phase, self.since_s = wire.Phase.IMAGE_PULL, now_s
        self.broken = self._crashes.holds_since(name, now_s, now_s)
        if self.broken:
            again_s = now_s + self._crashes.delay_real_s(name)
        self._crashes.failed(name, now_s, again_s)
        self._at(again_s, self._image)
        self._pod.fell(now_s)

    def slow(self, faults: fault.Faults, now_s: float) -> None:
        """Let the node's paths be as slow, for the pod's sake, as these faults make them."""
        self.faults = faults
        for kind, path in _SLOW.items():
            found = faults.holding(kind, now_s)
            factor = 1.0 if found is None else found.factor
            if self._slowed.get(path, 1.0) != factor:
                self._slowed[path] = factor
                self._node.links.slow(self._uid, path, factor, now_s)

    # --- what others see --------------------------------------------------------------------------

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
            wire.Phase.STARTED: 0.0,
        }

    @property
    def measured(self) -> coldstart.ColdStart:
        """The parts as they were; of one that is over."""
        took = self.took_s
        return coldstart.ColdStart(
            scheduling_s=took[wire.Phase.SCHEDULING],
            provisioning_s=self.unplaced_s,
            image_pull_s=took[wire.Phase.IMAGE_PULL],
            weight_load_s=took[wire.Phase.WEIGHT_LOAD],
            warm_up_s=took[wire.Phase.WARM_UP],
            probe_s=took[wire.Phase.PROBE],
        )

    # --- step by step -----------------------------------------------------------------------------

    def _bound(self, now_s: float) -> None:
        self._enter(wire.Phase.IMAGE_PULL, now_s)
        self._image(now_s)

    def _image(self, now_s: float) -> None:
        """See that the image is there; a kubelet looks at what is there for a moment too."""
        node, image = self._node, self._recipe.image
        if self.broken:
            self.broken = False
            self._pod.fell(now_s)
        if image in node.images.names:
            factor = jitter.factor(self._uid, f"pull/{names.ENGINE_CONTAINER}")
            self._at(now_s + self._plan.pull.cached_s * factor, self._launched)
        elif self._suffers(Type.IMAGE_PULL_ERROR, now_s):
            self._at(now_s + containers.REFUSAL_S, self._refused)
        else:
            self._pull(now_s)

    def _refused(self, now_s: float) -> None:
        """The registry fails: the kubelet tries again at its first sync after the back-off."""
        self._pulls.failed(self._recipe.image, now_s, now_s)
        wait_s = self._pulls.delay_real_s(self._recipe.image)
        self.broken = True
        self._pod.fell(now_s)
        self._at(now_s + math.ceil(wait_s / SYNC_S) * SYNC_S, self._image)

    def _pull(self, now_s: float) -> None:
        node, launch = self._node, self._recipe.launch
        every = layers.of(self._recipe.image, launch.image_bytes)
        route = planning.image_pull(self._uid, node.name, names.ENGINE_CONTAINER, every, node.facts)
        node.links.learn(route.links)
        key, run = f"{self._uid}/{self._run}", self._run
        node.images.pull(key, self._recipe.image, route.work, now_s)

        def ended(at_s: float) -> None:
            # The runtime finishes a pull that it began, whoever asked for it is still there or not.
            node.images.finish(key)
            self._pod.arrived(node, at_s)
            if run == self._run:
                self._launched(at_s)

        self._moves.wait(node.name, key, lambda: node.images.state(key).ends_s, ended)

    def _launched(self, now_s: float) -> None:
        """The container runs: it reads its weights, unless it is doomed."""
        self._enter(wire.Phase.WEIGHT_LOAD, now_s)
        if self._suffers(Type.CRASH_LOOP, now_s):
            self._at(now_s + faulting.CRASH_AFTER_S, self.crash)
        broken = self.faults.holding(Type.XID, now_s)
        if broken is not None and words.breaks_gpu(broken.xid):
            self._at(now_s + faulting.NO_GPU_AFTER_S, self.crash)
        node = self._node
        route = planning.weight_read(self._uid, node.name, self._recipe.launch, node.facts)
        node.links.learn(route.links)
        node.links.start(self._load_key, route.work, now_s)
        ends_s = functools.partial(node.links.ends_at_s, self._load_key)
        self._moves.wait(node.name, self._load_key, ends_s, self._loaded)

    def _loaded(self, now_s: float) -> None:
        warm = self._node.links.warm
        self._node.links.stop(self._load_key, now_s)
        if self._node.links.warm != warm:
            self._pod.arrived(self._node, now_s)
        if self._suffers(Type.CORRUPT_WEIGHTS, now_s) or self._suffers(
            Type.OUT_OF_GPU_MEMORY, now_s
        ):
            self.crash(now_s)
            return
        self._enter(wire.Phase.WARM_UP, now_s)
        factor = jitter.factor(self._uid, wire.Phase.WARM_UP)
        self._at(now_s + self._plan.warm_up_s * factor, self._warm)

    def _warm(self, now_s: float) -> None:
        self._enter(wire.Phase.PROBE, now_s)
        self._at(now_s + self.predicted.probe_s, self._probed)

    def _probed(self, now_s: float) -> None:
        self._enter(wire.Phase.STARTED, now_s)
        self._pod.serve(now_s)

    @property
    def _load_key(self) -> str:
        return f"{self._node.name}/load/{self._uid}"

    def _suffers(self, kind: Type, now_s: float) -> bool:
        found = self.faults.holding(kind, now_s, names.ENGINE_CONTAINER, self._recipe.launch.image)
        return found is not None

    def _enter(self, phase: wire.Phase, now_s: float) -> None:
        """Go on to the next phase."""
        self.took_s[self.phase] = now_s - self.since_s
        self.phase, self.since_s = phase, now_s

    def _drop(self, now_s: float) -> None:
        """What is under way comes to nothing."""
        self._run += 1
        self.broken = False
        self._moves.forget(self._node.name, self._load_key)
        self._node.links.stop(self._load_key, now_s)

    def _at(self, at_s: float, act: Act) -> None:
        self._agenda.at(at_s, Turn.LIFE, functools.partial(self._if_still, self._run, act))

    def _if_still(self, run: int, act: Act, now_s: float) -> None:
        if run == self._run:
            act(now_s)
