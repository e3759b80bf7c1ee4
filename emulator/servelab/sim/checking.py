"""What a scenario's fields say together: bounds that cross, and pools on which nothing can run."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from modelserve import errors
from modelserve.api import faults, names
from modelserve.catalog import gpus, storage
from modelserve.decide import fit, prediction
from servelab.node.pools import possible
from servelab.sim import scenario, suiting
from servelab.sim.pods import Template
from servelab.sim.suiting import Wish

Place = tuple[str | int, ...]
TENSOR_PARALLEL = (1, 2, 4, 8)
# What a problem of a spec is about, by its reason; some name it in their sentence.
_FIELDS = {
    "UnknownModel": "model.name",
    "InvalidModel": "model.custom",
    "UnknownGPU": "gpu.product",
    "UnknownStorageClass": "storage.class",
    "InvalidSpec": "engine.args",
    "ArgumentsContradictSpec": "engine.args",
    fit.Reason.LONGER_THAN_CONTEXT: "engine.maxModelLength",
    fit.Reason.WEIGHTS_DO_NOT_FIT: "gpu.product",
    fit.Reason.NO_ROOM_FOR_KV_CACHE: "engine.maxModelLength",
    fit.Reason.QUANTIZATION_UNSUPPORTED: "model.quantization",
    fit.Reason.RANKS_ON_SLICES: "gpu.tensorParallel",
}
_SAYING = ("InvalidModel", "InvalidSpec", "ArgumentsContradictSpec")
_SAID = re.compile(r"\bmodel\.custom\.\w+|\bengine\.(args|env)\b")


@dataclass(frozen=True, slots=True)
class Flaw:
    """Where it is, as keys and numbers from the top, and a sentence with the mend."""

    place: Place
    message: str


def flaws(given: scenario.Scenario) -> Iterator[Flaw]:
    """Everything that keeps the scenario from being run as it is."""
    unknown = False
    for number, one in enumerate(given.pools):
        try:
            gpus.find(one.gpu)
        except errors.UnknownName as error:
            unknown = True
            yield Flaw(("pools", number, "gpu"), str(error))
        yield from _of_pool(one, ("pools", number))
    for number, model in enumerate(given.models):
        place: Place = ("models", number)
        yield from _crossing(model, (*place, "spec"))
        yield from _annotated(model, (*place, "spec", "template", "annotations", names.FAULTS))
        if model.initial_replicas > model.spec.scaling.max_replicas:
            yield Flaw(
                (*place, "initialReplicas"),
                f"{model.initial_replicas} is above maxReplicas {model.spec.scaling.max_replicas}",
            )
    if not unknown:
        yield from _homeless(given)


def _crossing(model: scenario.SimulatedModel, place: Place) -> Iterator[Flaw]:
    """The rules between fields that the API server holds a ModelServe to."""
    scaling, most = model.spec.scaling, model.spec.scaling.max_replicas
    if scaling.min_replicas > most:
        message = f"{scaling.min_replicas} is above maxReplicas {most}"
        yield Flaw((*place, "scaling", "minReplicas"), message)
    if scaling.activation_replicas > most:
        message = f"{scaling.activation_replicas} is above maxReplicas {most}"
        yield Flaw((*place, "scaling", "activationReplicas"), message)
    if not 0 < scaling.target_utilization <= 2:
        message = f"must be over 0 and at most 2, and is {scaling.target_utilization:g}"
        yield Flaw((*place, "scaling", "targetUtilization"), message)
    if scaling.target_queue_depth is not None and scaling.target_queue_depth < 1:
        yield Flaw((*place, "scaling", "targetQueueDepth"), "must be at least 1")
    if model.spec.gpu.tensor_parallel not in TENSOR_PARALLEL:
        yield Flaw((*place, "gpu", "tensorParallel"), "must be 1, 2, 4 or 8")


def _of_pool(pool: scenario.Pool, place: Place) -> Iterator[Flaw]:
    """What a simulation does not know, and what no pool can be."""
    for field, given in (("mig", pool.mig), ("timeSlicing", pool.time_slicing)):
        if given is not None:
            yield Flaw((*place, field), "only whole GPUs are simulated: leave it out")
    yield from _timeless(pool.faults, (*place, "faults"))
    for at, message in possible.flaws(pool.name, pool):
        yield Flaw((*place, *at), message)
    try:
        storage.find(pool.storage.class_ or storage.DEFAULT)
    except errors.UnknownName as error:
        yield Flaw((*place, "storage", "class"), str(error))


def _timeless(said: Iterable[faults.Fault], place: Place) -> Iterator[Flaw]:
    """Faults that begin at a date, of which a simulation has none."""
    for number, fault in enumerate(said):
        if fault.at is not None:
            message = "a simulation knows no dates: give afterSeconds, from the start of traffic"
            yield Flaw((*place, number, "at"), message)


def _annotated(model: scenario.SimulatedModel, place: Place) -> Iterator[Flaw]:
    """What is wrong with the faults that the pods' annotation lists."""
    try:
        said = faults.parse(model.spec.template.annotations.get(names.FAULTS, ""), model.name)
    except errors.InputError as error:
        yield Flaw(place, str(error))
        return
    yield from _timeless(said, place)
    wrong = next((each for each in said if each.of_node), None)
    if wrong is not None:
        yield Flaw(place, f"a fault of type {wrong.type} befalls nodes, not pods: give it a pool")


def _homeless(given: scenario.Scenario) -> Iterator[Flaw]:
    """Models that no pool can take, or not as many replicas of as must always be there."""
    known: dict[Wish, frozenset[int]] = {}  # numbers of pools
    asked: dict[frozenset[int], int] = {}  # GPUs that are always taken, by where they may be
    for number, model in enumerate(given.models):
        place: Place = ("models", number, "spec")
        assessed = prediction.assess(model.name, model.spec)
        if isinstance(assessed, prediction.Problem):
            yield Flaw((*place, *_blamed(assessed)), assessed.message)
            continue
        wish, product = Template(model.name, model.spec, assessed).wish, assessed.gpu.product_label
        pools = known.get(wish)
        if pools is None:
            fitting = (at for at, one in enumerate(given.pools) if wish.suits_pool(one))
            pools = known[wish] = frozenset(fitting)
        if not pools:
            obstacle = no_pool(model.name, wish, product, given.pools)
            yield Flaw((*place, *obstacle.place), obstacle.reason)
            continue
        least, each = model.spec.scaling.min_replicas, wish.gpus
        asked[pools] = asked.get(pools, 0) + least * each
        taken = sum(gpus for others, gpus in asked.items() if others <= pools)
        found = [given.pools[at] for at in pools]
        there = sum(one.node_most * (one.gpus_per_node // each) * each for one in found)
        if least and taken > there:
            message = (
                f"with this minReplicas {taken} × {product} are always taken, and the pools have "
                f"{there} at most: lower it, or add nodes"
            )
            yield Flaw((*place, "scaling", "minReplicas"), message)


def _blamed(problem: prediction.Problem) -> Place:
    """The field of a spec that is to be mended: what the sentence names, or what it is about."""
    named = _SAID.search(problem.message) if problem.reason in _SAYING else None
    return tuple((named[0] if named else _FIELDS.get(problem.reason, "")).split("."))


def no_pool(
    name: str, wish: Wish, product: str, pools: Iterable[scenario.Pool]
) -> suiting.Obstacle:
    """What keeps a model's pods from all pools: where in its spec, and a sentence with the mend."""
    found = {pool.name: suiting.obstacle(wish, pool, product) for pool in pools}
    known = {pool: each for pool, each in found.items() if each is not None}
    places = [each.place for each in known.values()]
    others = {pool: each for pool, each in known.items() if each.place not in suiting.OF_GPU}
    if not others:
        message = (
            f"{name} needs {wish.gpus} × {product} on one node, and no pool has that: add one, or "
            "change the model's gpu"
        )
        few = suiting.RANKS in places
        return suiting.Obstacle(suiting.RANKS if few else suiting.PRODUCT, message)
    reasons = "; ".join(f"pool {pool} {each.reason}" for pool, each in others.items())
    first = next(iter(others.values()))
    return suiting.Obstacle(first.place, f"no pool takes {name}: {reasons}; change it, or add one")
