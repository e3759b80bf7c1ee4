"""What a cold start finds on a node: rates and caches, as the Node object tells them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from modelserve import errors
from modelserve.api import names, quantities
from modelserve.catalog import images, layers
from modelserve.engines.types import Launch


@dataclass(frozen=True, slots=True)
class NodeRates:
    """What limits a cold start on a node; None where the storage class is to say."""

    registry_bytes_per_s: float
    unpack_bytes_per_s: float
    storage_read_bytes_per_s: float | None
    storage_shared_bytes_per_s: float | None
    network_bytes_per_s: float
    layer_bytes_per_s: float | None = None  # of one layer's download; None: no limit of its own


@dataclass(frozen=True, slots=True)
class CacheState:
    """What a node has: the image or some of its layers, compiled graphs, the weights in memory."""

    image_present: bool = False
    compile_cached: bool = False
    page_cached: bool = False
    layers: frozenset[str] = frozenset()  # digests


def node_rates(annotations: Mapping[str, str]) -> NodeRates:
    """A node's rates from its annotations; the catalogue's where one is missing.

    Raises QuantityError for a rate that cannot be read, naming the annotation.
    """
    defaults = images.pull_defaults()
    return NodeRates(
        registry_bytes_per_s=_rate(annotations, names.REGISTRY_BANDWIDTH)
        or defaults.registry_bytes_per_s,
        unpack_bytes_per_s=_rate(annotations, names.UNPACK_BANDWIDTH)
        or defaults.unpack_bytes_per_s,
        storage_read_bytes_per_s=_rate(annotations, names.STORAGE_READ_BANDWIDTH),
        storage_shared_bytes_per_s=_rate(annotations, names.STORAGE_SHARED_BANDWIDTH),
        network_bytes_per_s=_rate(annotations, names.NETWORK_BANDWIDTH)
        or defaults.network_bytes_per_s,
        layer_bytes_per_s=_rate(annotations, names.LAYER_BANDWIDTH),
    )


def listed_layers(listed: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Digests of the layers of the images that ``node.status.images`` lists.

    A node lists at most 50 images, so it may have more; ``sizeBytes`` is what a pull moved.
    """
    return frozenset(
        layer.digest
        for entry in listed
        for name in entry.get("names") or ()
        if "@" not in name
        for layer in layers.of(name, int(entry.get("sizeBytes", 0)))
    )


def weights_name(launch: Launch) -> str:
    """What a node's annotation calls these weights once they are in its memory."""
    return f"{launch.model.name}@{launch.quantization.value}"


def warm_weights(annotations: Mapping[str, str]) -> Mapping[str, int]:
    """Bytes by weights in a node's page cache, as its annotation says; none if it is broken."""
    try:
        found = json.loads(annotations.get(names.WARM_WEIGHTS) or "{}")
        return {str(name): int(size) for name, size in found.items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def provisioning_s(annotations: Mapping[str, str]) -> float:
    """How long another node like this one takes to come; 0 where none would."""
    try:
        return max(0.0, float(annotations.get(names.PROVISIONING_SECONDS) or 0))
    except ValueError:
        return 0.0


def without_caches(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """What a new node like this one would say of itself."""
    return {key: value for key, value in annotations.items() if key != names.WARM_WEIGHTS}


def is_warm(launch: Launch, annotations: Mapping[str, str]) -> bool:
    """Whether all of the weights are in the node's page cache."""
    size = launch.model.weight_bytes(launch.quantization)
    return warm_weights(annotations).get(weights_name(launch), 0) >= size


def _rate(annotations: Mapping[str, str], name: str) -> float | None:
    text = annotations.get(name)
    if not text:
        return None
    try:
        return quantities.parse_rate(text)
    except errors.QuantityError as error:
        raise errors.QuantityError(f"node annotation {name}: {error}") from error
