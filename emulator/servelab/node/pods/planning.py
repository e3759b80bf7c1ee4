"""What starting a pod takes on its node: pulls, the steps of its engines, how others behave.

The plan is ``modelserve.decide.coldstart``'s, the one the operator predicts with; here it gets
its jitter, drawn from the pod's UID.
"""

import contextlib
import dataclasses
import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from modelserve import errors
from modelserve.api import names, pool, quantities, wire
from modelserve.catalog import gpus, layers
from modelserve.catalog import images as catalogue
from modelserve.decide import coldstart, nodefacts
from modelserve.engines import installed, ranks
from modelserve.engines import launch as launches
from servelab.node.gpus import slices
from servelab.node.kubelet import behavior
from servelab.node.machines import images
from servelab.node.pods import courses, podspec, starting
from servelab.timing import jitter, routes, transfers

# Compressed bytes of an image that neither the pod nor the catalogue knows; our choice, about what
# a small service with its runtime weighs.
UNKNOWN_IMAGE_BYTES = 200_000_000
# An engine that cannot start as written gets this far, in emulated seconds: its imports.
REFUSAL_S = 9.0
# What argparse exits with.
USAGE_EXIT_CODE = 2


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What the node says of itself."""

    gpu: gpus.Gpu
    rates: nodefacts.NodeRates
    pool: str = ""
    registry_bytes_per_s: float | None = None  # what the registry gives the whole pool
    warm: Callable[[], Mapping[str, int]] = dict  # bytes by weights in the page cache
    mig_profile: str = ""  # whose slices its GPUs are

    def gpu_of(self, spec: podspec.Container) -> gpus.Gpu:
        """What a container's process finds: a GPU, or a slice of one."""
        return slices.found_by(spec.raw, self.gpu, self.mig_profile)

    def is_warm(self, launch: launches.Launch) -> bool:
        """Whether all of the weights are in the page cache."""
        size = launch.model.weight_bytes(launch.quantization)
        return self.warm().get(nodefacts.weights_name(launch), 0) >= size


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """One engine of the pod. ``links`` are bytes per second of those that its weights pass.

    ``refusal`` is what its log says if it cannot start as written; it then ends with that code.
    """

    spec: podspec.Container
    gpu: gpus.Gpu
    start: starting.EngineStart
    refusal: str = ""
    exit_code: int = 1
    links: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """Pulls, behaviours and engines by container; ``fault`` is what is wrong with annotations.

    ``links`` are bytes per second of the links that its transfers pass.
    """

    works: Mapping[str, transfers.Work]
    links: Mapping[str, float]
    behaviors: Mapping[str, behavior.Behavior]
    images: Mapping[str, behavior.ImageFact]
    engines: Mapping[str, EnginePlan]
    fault: str = ""


def of_pod(pod: podspec.Pod, facts: NodeFacts, store: images.NodeImages) -> Plan:
    """Plan the pod's start on that node."""
    found, behaviors, fault = _annotated(pod)
    pulls = {spec.name: _pull(pod, spec, facts, found) for spec in pod.containers}
    started = [
        engine
        for spec in pod.containers
        if spec.main and (engine := _engine(pod, spec, facts, store)) is not None
    ]
    links = [route.links for route in pulls.values()] + [engine.links for engine in started]
    return Plan(
        {name: route.work for name, route in pulls.items()},
        {link: rate for each in links for link, rate in each.items()},
        behaviors,
        found,
        {engine.spec.name: engine for engine in started},
        fault,
    )


def images_of(pod: podspec.Pod) -> Mapping[str, str]:
    """The image of each container: those may be added or changed while the pod lives."""
    return {spec.name: spec.image for spec in pod.containers}


def again(
    pod: podspec.Pod, container: str, facts: NodeFacts, store: images.NodeImages
) -> EnginePlan | None:
    """How an engine starts that has run on the node before; None if the container is none."""
    spec = next(each for each in pod.containers if each.name == container)
    return _engine(pod, spec, facts, store)


def _engine(
    pod: podspec.Pod, spec: podspec.Container, facts: NodeFacts, store: images.NodeImages
) -> EnginePlan | None:
    gpu = facts.gpu_of(spec)
    try:
        launch = _launch(launches.written(spec.raw, pod.annotations), gpu.key)
        found = slices.seen_by(spec.raw, gpu)
        if launch is not None:
            # Who asked for none finds all that the node has.
            ranks.check(launch, pool.MOST_GPUS if found is None else found)
    except errors.UsageError as error:
        return EnginePlan(spec, gpu, _refused(spec), error.told(), USAGE_EXIT_CODE)
    except errors.InputError as error:
        said = str(error) if isinstance(error, errors.StartRefused) else f"ERROR {error}"
        return EnginePlan(spec, gpu, _refused(spec), said)
    if launch is None:
        return None
    present = store.present(spec.image)
    there = frozenset[str]() if present else store.digests()
    pull = coldstart.pull(launch, facts.rates, nodefacts.CacheState(present, layers=there))
    course = courses.of(launch, gpu, facts.rates, warm=facts.is_warm(launch))
    load = weight_read(pod.uid, pod.node, launch, facts)
    if course.unloaded:
        start = dataclasses.replace(_unloaded(spec, course, pull.duration_s), engine=launch.engine)
        return EnginePlan(spec, gpu, start, course.refusal)
    start = _start(pod, spec, course, load.work, pull.duration_s)
    start = dataclasses.replace(start, engine=launch.engine)
    return EnginePlan(spec, gpu, start, course.refusal, links=load.links)


@functools.lru_cache(maxsize=256)
def _launch(text: str, gpu: str) -> launches.Launch | None:
    """Read once for all pods of a Deployment, from what was ``written``; ``gpu`` is its key.

    None for no engine, and for one that its image lacks: what it does then is its behaviour.
    """
    container, annotations = json.loads(text)
    if installed.lack(container) is not None:
        return None
    return launches.parse(container, annotations, gpus.find(gpu))


def _annotated(
    pod: podspec.Pod,
) -> tuple[Mapping[str, behavior.ImageFact], Mapping[str, behavior.Behavior], str]:
    """Facts of images, behaviours, and what is wrong with the annotations that say so."""
    found: Mapping[str, behavior.ImageFact] = {}
    try:
        found = behavior.parse_images(pod)
        return found, behavior.parse(pod), ""
    except errors.InputError as error:
        return found, dict.fromkeys((c.name for c in pod.containers), behavior.PLAIN), str(error)


def weight_read(uid: str, node: str, launch: launches.Launch, facts: NodeFacts) -> routes.Route:
    """The read of a pod's weights on that node. A pool has one backend of each storage class."""
    known, factor = launch.storage_class, jitter.factor(uid, wire.Phase.WEIGHT_LOAD)
    cold, warm = (
        routes.weights(
            planned,
            node,
            f"{facts.pool}/{known.name if known is not None else ''}",
            connections=launch.tensor_parallel,
            factor=factor,
        )
        for planned in courses.reads(launch, facts.gpu, facts.rates)
    )
    kept = coldstart.page_cacheable(launch)
    return routes.WeightRead.of(cold, nodefacts.weights_name(launch), warm if kept else None)


def image_pull(
    uid: str, node: str, container: str, every: tuple[layers.Layer, ...], facts: NodeFacts
) -> routes.Route:
    """The pull of an image of these layers for a pod's container, as if none were there."""
    work, links = routes.ImagePull.of(
        every,
        facts.rates,
        node,
        registry_bytes_per_s=facts.registry_bytes_per_s,
        pool=facts.pool,
        factor=jitter.factor(uid, f"pull/{container}"),
    )
    return routes.Route(work, links)


def _start(
    pod: podspec.Pod,
    spec: podspec.Container,
    course: courses.Course,
    load: transfers.Work,
    pull_planned_s: float,
) -> starting.EngineStart:
    warm_up = transfers.Work(course.warm_up_s * jitter.factor(pod.uid, wire.Phase.WARM_UP))
    parts = (
        (wire.Phase.WEIGHT_LOAD, load, course.load_s),
        (wire.Phase.WARM_UP, warm_up, course.warm_up_s),
    )
    steps = (
        starting.Step(phase, work, planned_s, course.lines[phase])
        for phase, work, planned_s in parts
    )
    return starting.EngineStart(spec.name, tuple(steps), pull_planned_s)


def _unloaded(
    spec: podspec.Container, course: courses.Course, pull_planned_s: float
) -> starting.EngineStart:
    """One that ends where it would have begun to read its weights."""
    phase, work = wire.Phase.WEIGHT_LOAD, transfers.Work(REFUSAL_S)
    step = starting.Step(phase, work, REFUSAL_S, course.lines[phase])
    return starting.EngineStart(spec.name, (step,), pull_planned_s)


def _refused(spec: podspec.Container) -> starting.EngineStart:
    work = transfers.Work(REFUSAL_S)
    return starting.EngineStart(spec.name, (starting.Step(wire.Phase.WARM_UP, work, REFUSAL_S),))


def _pull(
    pod: podspec.Pod,
    spec: podspec.Container,
    facts: NodeFacts,
    told: Mapping[str, behavior.ImageFact],
) -> routes.Route:
    """The pull of one image, as if it were not there."""
    said = told.get(spec.image, behavior.ImageFact())
    known = catalogue.find(spec.image)
    size = known.compressed_bytes if known else UNKNOWN_IMAGE_BYTES
    wanted = pod.annotations.get(names.IMAGE_SIZE)
    if wanted and not spec.init:
        # One that cannot be read is told in the pod's log, by the engine's own parser.
        with contextlib.suppress(errors.QuantityError):
            size = quantities.parse_bytes(wanted)
    size = size if said.size_bytes is None else said.size_bytes
    if said.pull_s is not None:
        return routes.Route(transfers.Work(said.pull_s, size), {})
    return image_pull(pod.uid, pod.node, spec.name, layers.of(spec.image, size), facts)
