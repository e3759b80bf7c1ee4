"""Layers of container images: what images have in common, a node that has one need not pull.

Registries' manifests are not read: an image is the layers of its base (``data/images.yaml``), which
every image and tag on that base shares, and its own, the largest with the catalogue's share.
"""

import functools
import hashlib
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from modelserve.catalog import files, images

# Bytes on the disk for each byte that is moved, of an image the catalogue does not have: what the
# vLLM image has (22 GB of 8.9 GB).
UNPACKED_RATIO = 2.5
# containerd fetches so many layers of an image at once, and unpacks one at a time.
CONCURRENT_DOWNLOADS = 3


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer by its digest: bytes a pull moves, bytes on the disk."""

    digest: str
    compressed_bytes: int
    unpacked_bytes: int


@dataclass(frozen=True, slots=True)
class Base:
    """What images are built on, in equal layers."""

    name: str
    compressed_bytes: int
    unpacked_bytes: int
    layers: int


def of(reference: str, compressed_bytes: int) -> tuple[Layer, ...]:
    """The layers of an image of that size, the base's first; sizes sum up to the image's.

    No own layer is larger than the largest. An image too small for its catalogue entry's base (its
    size was set by hand) has none.
    """
    return _layers(images.canonical(reference), compressed_bytes)


@functools.lru_cache(maxsize=1024)
def _layers(reference: str, compressed_bytes: int) -> tuple[Layer, ...]:
    known = images.find(reference)
    largest = min(
        1.0, max(0.01, known.largest_layer_share if known else images.LARGEST_LAYER_SHARE)
    )
    ratio = known.unpacked_bytes / known.compressed_bytes if known else UNPACKED_RATIO
    unpacked_bytes = round(compressed_bytes * ratio)
    # A mirror's image is the one it mirrors.
    whose = f"{known.repository}:{images.split(reference)[1]}" if known else reference
    base = base_of(known)
    own_bytes = compressed_bytes - (base.compressed_bytes if base else 0)
    if base is None or not _fits(base, compressed_bytes, largest):
        return tuple(_split(whose, compressed_bytes, unpacked_bytes, largest))
    own_unpacked_bytes = max(0, unpacked_bytes - base.unpacked_bytes)
    own = _split(whose, own_bytes, own_unpacked_bytes, largest * compressed_bytes / own_bytes)
    return (*_equal(base.name, base.compressed_bytes, base.unpacked_bytes, base.layers), *own)


def _fits(base: Base, compressed_bytes: int, largest: float) -> bool:
    room = compressed_bytes * (1.0 - largest)
    return base.compressed_bytes <= room and (
        base.compressed_bytes <= base.layers * largest * compressed_bytes
    )


def base_of(image: images.Image | None) -> Base | None:
    """What a catalogue image is built on, as far as others are built on it too."""
    if image is None:
        return None
    entries: Iterable[Mapping[str, Any]] = files.load("images")["images"]
    name = next((e.get("base") for e in entries if e["repository"] == image.repository), None)
    return None if name is None else bases()[name["value"]]


@functools.cache
def bases() -> Mapping[str, Base]:
    """Every base of the catalogue by name."""
    entries: Mapping[str, Mapping[str, Any]] = files.load("images")["bases"]
    return {
        name: Base(
            name,
            round(entry["compressed_gb"]["value"] * 1e9),
            round(entry["unpacked_gb"]["value"] * 1e9),
            entry["layers"]["value"],
        )
        for name, entry in entries.items()
    }


def missing(layers: Iterable[Layer], there: Collection[str]) -> tuple[Layer, ...]:
    """The layers a pull has to fetch, each once; ``there`` are digests."""
    return tuple({each.digest: each for each in layers if each.digest not in there}.values())


def streams(layers: Iterable[Layer], at_once: int = CONCURRENT_DOWNLOADS) -> float:
    """How many connections a download of these layers has at work, on average.

    Layers begin in their order, each when a connection is free. An image that is one large layer
    has little more than one.
    """
    free_at = [0.0] * at_once
    total = 0
    for layer in layers:
        place = free_at.index(min(free_at))
        free_at[place] += layer.compressed_bytes
        total += layer.compressed_bytes
    return total / max(free_at) if total else float(at_once)


def _split(whose: str, compressed: int, unpacked: int, largest: float) -> Iterable[Layer]:
    """The largest layer, and the rest in equal parts, none larger than it."""
    largest = min(1.0, largest)
    first, first_unpacked = round(largest * compressed), round(largest * unpacked)
    yield Layer(_digest(f"{whose}/largest"), first, first_unpacked)
    rest = compressed - first
    if rest > 0:
        parts = math.ceil(rest / max(1, first) - 1e-9)
        yield from _equal(whose, rest, unpacked - first_unpacked, parts)


def _equal(whose: str, compressed: int, unpacked: int, parts: int) -> Iterable[Layer]:
    for place in range(parts):
        yield Layer(
            _digest(f"{whose}/{place}"),
            _part(compressed, place, parts),
            _part(unpacked, place, parts),
        )


def _part(whole: int, place: int, parts: int) -> int:
    return round((place + 1) * whole / parts) - round(place * whole / parts)


def _digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
