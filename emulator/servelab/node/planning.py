"""What starting a pod takes on its node: pulls, and the steps of the engine if it has one.

The plan is ``modelserve.decide.coldstart``'s, the one the operator predicts with; here it gets
its jitter, drawn from the pod's UID.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from modelserve import errors
from modelserve.api import names, quantities, wire
from modelserve.catalog import gpus
from modelserve.catalog import images as catalogue
from modelserve.decide import coldstart
from modelserve.engines import launch as launches
from servelab.engine import assembly
from servelab.engine.surfaces import registry
from servelab.node import images, podspec, starting
from servelab.node.kubelet import behavior
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
    rates: coldstart.NodeRates
    pool: str = ""
    registry_bytes_per_s: float | None = None  # what the registry gives the whole pool


@dataclass(frozen=True, slots=True)
class PodPlan:
    """Pulls by container, and the start of the engine, if the pod has one.

    ``links`` are bytes per second of the links that its transfers pass.
    ``refusal`` is what the engine's log says if it cannot start as written; it then ends with
    ``exit_code``.
    """

    works: Mapping[str, transfers.Work]
    behaviors: Mapping[str, behavior.Behavior] = field(default_factory=dict)
    images: Mapping[str, behavior.ImageFact] = field(default_factory=dict)
    fault: str = ""  # what is wrong with its annotations
    engine: starting.EngineStart | None = None
    container: podspec.Container | None = None
    refusal: str = ""
    exit_code: int = 1
    links: Mapping[str, float] = field(default_factory=dict)


def plan(pod: podspec.Pod, facts: NodeFacts, store: images.NodeImages) -> PodPlan:
    """Plan the pod's start on that node."""
    found, behaviors, fault = _annotated(pod)
    pulls = {spec.name: _pull(pod, spec, facts, found) for spec in pod.containers}
    works = {name: route.work for name, route in pulls.items()}
    links = {link: rate for route in pulls.values() for link, rate in route.links.items()}
    for spec in pod.containers:
        if spec.init:
            continue
        try:
            launch = launches.parse(spec.raw, pod.annotations, facts.gpu)
        except errors.UsageError as error:
            told = _engine_plan(works, _refused(spec), spec, error.told(), USAGE_EXIT_CODE)
            return replace(told, links=links)
        except errors.InputError as error:
            return replace(_engine_plan(works, _refused(spec), spec, f"ERROR {error}"), links=links)
        if launch is not None:
            refusal = _misfit(launch, facts.gpu)
            cache = coldstart.CacheState(image_present=store.present(spec.image))
            planned = coldstart.plan(launch, facts.gpu, facts.rates, cache)
            load = _load(pod, launch, planned, facts)
            engine = _engine(pod, spec, launch, planned, facts.gpu, load.work)
            started = _engine_plan(works, _silent(engine) if refusal else engine, spec, refusal)
            return replace(started, links={**links, **load.links})
    return PodPlan(works, behaviors, found, fault, links=links)


def _engine_plan(
    works: Mapping[str, transfers.Work],
    engine: starting.EngineStart,
    spec: podspec.Container,
    refusal: str,
    exit_code: int = 1,
) -> PodPlan:
    return PodPlan(works, engine=engine, container=spec, refusal=refusal, exit_code=exit_code)


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


def _misfit(launch: launches.Launch, gpu: gpus.Gpu) -> str:
    """Why the engine finds, once its weights are loaded, that it cannot serve; empty if it can."""
    try:
        assembly.from_launch(launch, gpu, seed=0)
    except errors.InputError as error:
        return f"ERROR {error}"
    return ""


def _silent(engine: starting.EngineStart) -> starting.EngineStart:
    """The start without the lines that tell of a readiness which never comes."""
    *before, last = engine.steps
    return replace(engine, steps=(*before, replace(last, lines=())))


def _load(
    pod: podspec.Pod, launch: launches.Launch, planned: coldstart.Plan, facts: NodeFacts
) -> routes.Route:
    """The read of the weights. A pool has one backend of each storage class."""
    known = launch.storage_class
    return routes.weights(
        planned.weights,
        pod.node,
        f"{facts.pool}/{known.name if known is not None else ''}",
        connections=launch.tensor_parallel,
        factor=jitter.factor(pod.uid, wire.Phase.WEIGHT_LOAD),
    )


def _engine(
    pod: podspec.Pod,
    spec: podspec.Container,
    launch: launches.Launch,
    planned: coldstart.Plan,
    gpu: gpus.Gpu,
    load: transfers.Work,
) -> starting.EngineStart:
    said = registry.of(launch.engine, launch.options).log.start_lines(launch, planned, gpu)
    warm_up_s = planned.warm_up_s
    warm_up = transfers.Work(warm_up_s * jitter.factor(pod.uid, wire.Phase.WARM_UP))
    parts = (
        (wire.Phase.WEIGHT_LOAD, load, planned.weights.duration_s),
        (wire.Phase.WARM_UP, warm_up, warm_up_s),
    )
    steps = (
        starting.Step(
            phase,
            work,
            planned_s,
            tuple(starting.Line(line.share, line.text) for line in said if line.phase is phase),
        )
        for phase, work, planned_s in parts
    )
    return starting.EngineStart(spec.name, tuple(steps), planned.pull.duration_s)


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
    share = known.largest_layer_share if known else catalogue.LARGEST_LAYER_SHARE
    wanted = pod.annotations.get(names.IMAGE_SIZE)
    if wanted and not spec.init:
        # One that cannot be read is told in the pod's log, by the engine's own parser.
        with contextlib.suppress(errors.QuantityError):
            size = quantities.parse_bytes(wanted)
    size = size if said.size_bytes is None else said.size_bytes
    if said.pull_s is not None:
        return routes.Route(transfers.Work(said.pull_s, size), {})
    registry = coldstart.Limit(
        coldstart.Binds.REGISTRY, facts.rates.registry_bytes_per_s, shared=True
    )
    network = coldstart.Limit(coldstart.Binds.NETWORK, facts.rates.network_bytes_per_s, shared=True)
    pull = coldstart.Pull(
        present=False,
        download=coldstart.Transfer(size, (registry, network)),
        unpack_bytes_per_s=facts.rates.unpack_bytes_per_s,
        largest_layer_share=share,
        cached_s=catalogue.pull_defaults().cached_s,
    )
    return routes.pull(
        pull,
        pod.node,
        registry_bytes_per_s=facts.registry_bytes_per_s,
        pool=facts.pool,
        factor=jitter.factor(pod.uid, f"pull/{spec.name}"),
    )
