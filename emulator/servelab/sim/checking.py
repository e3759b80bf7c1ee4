"""What a scenario's fields say together: bounds that cross, and pools on which nothing can run."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from modelserve import errors
from modelserve.api import faults, names
from modelserve.catalog import gpus, storage
from modelserve.decide import prediction
from servelab.node.pools import possible
from servelab.sim import scenario

Place = tuple[str | int, ...]
TENSOR_PARALLEL = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Flaw:
    """Where it is, as keys and numbers from the top, and a sentence with the mend."""

    place: Place
    message: str


def flaws(given: scenario.Scenario) -> Iterator[Flaw]:
    """Everything that keeps the scenario from being run as it is."""
    products: dict[int, str] = {}
    for number, one in enumerate(given.pools):
        try:
            products[number] = gpus.find(one.gpu).product_label
        except errors.UnknownName as error:
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
    if len(products) == len(given.pools):
        yield from _homeless(given, products)


def _crossing(model: scenario.SimulatedModel, place: Place) -> Iterator[Flaw]:
    """The rules between fields that the API server holds a ModelServe to."""
    scaling, most = model.spec.scaling, model.spec.scaling.max_replicas
    if scaling.min_replicas > most:
        message = f"{scaling.min_replicas} is above maxReplicas {most}"
        yield Flaw((*place, "scaling", "minReplicas"), message)
    if scaling.activation_replicas > most:
        message = f"{scaling.activation_replicas} is above maxReplicas {most}"
        yield Flaw((*place, "scaling", "activationReplicas"), message)
    if not 0 < scaling.target_utilization <= 1:
        message = f"must be over 0 and at most 1, and is {scaling.target_utilization:g}"
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


def _homeless(given: scenario.Scenario, products: dict[int, str]) -> Iterator[Flaw]:
    """Models that no pool can take, or not as many replicas of as must always be there."""
    asked: dict[str, int] = {}
    for number, model in enumerate(given.models):
        place: Place = ("models", number, "spec")
        assessed = prediction.assess(model.name, model.spec)
        if isinstance(assessed, prediction.Problem):
            yield Flaw(place, assessed.message)
            continue
        product, each = assessed.gpu.product_label, model.spec.gpu.tensor_parallel
        fitting = [one for at, one in enumerate(given.pools) if products[at] == product]
        fitting = [one for one in fitting if one.gpus_per_node >= each and one.node_most]
        if not fitting:
            message = (
                f"{model.name} needs {each} × {product} on one node, and no pool has that: "
                "add one, or change the model's gpu"
            )
            yield Flaw((*place, "gpu"), message)
            continue
        least = model.spec.scaling.min_replicas
        asked[product] = asked.get(product, 0) + least * each
        there = sum(one.node_most * (one.gpus_per_node // each) * each for one in fitting)
        if least and asked[product] > there:
            message = (
                f"with this minReplicas {asked[product]} × {product} are always taken, and the "
                f"pools have {there} at most: lower it, or add nodes"
            )
            yield Flaw((*place, "scaling", "minReplicas"), message)
