"""Reads a GPUPool, and says of one that cannot be why (pure)."""

import re
from collections.abc import Iterator
from decimal import Decimal

import pydantic

from modelserve import errors
from modelserve.api.pool import ElasticNodes, GPUPoolSpec
from modelserve.catalog import gpus
from modelserve.ports import Object
from servelab.node.gpus import claims, labels, slices
from servelab.node.machines import addresses
from servelab.node.pools import registration
from servelab.node.rules import amounts

# Where in a spec, as keys and numbers.
Place = tuple[str | int, ...]

MIB = 1024**2
# What a kubelet keeps free (its default evictionHard, memory.available).
KEPT_MEMORY_BYTES = 100 * MIB
# What it lets the logs of one container take (containerLogMaxFiles × containerLogMaxSize).
LOGS_BYTES = 5 * 10 * MIB

# A part of a place in a spec; what pydantic calls the kinds of a union looks otherwise.
_FIELD = re.compile(r"(?!int$)[a-z][A-Za-z]*|[0-9]+")


def read(owner: Object) -> tuple[GPUPoolSpec, gpus.Gpu]:
    """Its spec and its GPU. Raises InputError with field and mend for a pool that cannot be."""
    name = owner["metadata"]["name"]
    try:
        spec = GPUPoolSpec.model_validate(owner["spec"])
    except pydantic.ValidationError as error:
        raise errors.InputError(_sentence(error)) from error
    gpu = gpus.find(spec.gpu)
    registration.check_name(name, spec)
    registration.render_annotations(spec)
    slices.check(spec, gpu)
    labels.of_node(spec, gpu)
    claims.check(spec, gpu)
    addresses.check_room(spec)
    for place, what in flaws(name, spec):
        raise errors.InputError(f"spec.{'.'.join(map(str, place))}: {what}")
    return spec, gpu


def flaws(name: str, spec: GPUPoolSpec) -> Iterator[tuple[Place, str]]:
    """Machines too small to be nodes, and faults of what the pool has not: place and sentence."""
    yield from _small(spec)
    known = {f"{name}-{number}" for number in range(spec.node_most)}
    for number, fault in enumerate(spec.faults):
        for place, node in enumerate(fault.nodes):
            if node not in known:
                what = f"pool {name} never has a node {node}: the first is {name}-0"
                yield ("faults", number, "nodes", place), what
        if fault.gpus is not None and fault.gpus > spec.gpus_per_node:
            what = f"{fault.gpus} GPUs are more than the {spec.gpus_per_node} of a node; name fewer"
            yield ("faults", number, "gpus"), what


def _small(spec: GPUPoolSpec) -> Iterator[tuple[Place, str]]:
    if amounts.parse(spec.cpu) < 1:
        yield ("cpu",), f"{spec.cpu} is less than one CPU, which every machine has; ask for more"
    if amounts.parse(spec.memory) <= KEPT_MEMORY_BYTES:
        yield (
            ("memory",),
            f"{spec.memory} is no more than the {_mib(KEPT_MEMORY_BYTES)} that a kubelet keeps "
            "free; ask for more",
        )
    if amounts.parse(spec.disk) <= LOGS_BYTES:
        yield (
            ("disk",),
            f"{spec.disk} is no more than the {_mib(LOGS_BYTES)} that one container's logs may "
            "take, without an image; ask for more",
        )


def _mib(size_bytes: int) -> str:
    return amounts.write(Decimal(size_bytes), "Mi")


def _sentence(error: pydantic.ValidationError) -> str:
    """The first mistake. Of what can be one thing or another, that of the thing it is."""
    found = error.errors()
    kinds = ("int_type", "model_type", "model_attributes_type")
    first = next((each for each in found if each["type"] not in kinds), found[0])
    place, what = first["loc"], first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        # Only of elastic nodes: what else a GPUPool does not know, the API server takes away.
        known = ", ".join(field.alias or name for name, field in ElasticNodes.model_fields.items())
        place, what = place[:-1], f"there is no field {place[-1]}; there are {known}"
    where = ".".join(str(part) for part in place if _FIELD.fullmatch(str(part)))
    return f"spec.{where}: {what}"
