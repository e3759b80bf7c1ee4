"""Container images of the engines: sizes, layers, and the pull rates of nodes that say nothing.

Numbers come from ``data/images.yaml``.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelserve.api.spec import EngineType
from modelserve.catalog import files

# The largest layer's share in an image of unknown make: what the vLLM image has (data/images.yaml).
LARGEST_LAYER_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Image:
    """An engine's image: bytes the registry moves, bytes on the node's disk, its largest layer."""

    repository: str
    tag: str
    engine: EngineType
    amd: bool
    compressed_bytes: int
    unpacked_bytes: int
    largest_layer_share: float

    @property
    def reference(self) -> str:
        """``repository:tag``."""
        return f"{self.repository}:{self.tag}"

    @property
    def distinctive_word(self) -> str | None:
        """The repository's last word where it tells the engine by itself."""
        word = self.repository.rsplit("/", 1)[-1]
        return None if word == "release" or self.engine is EngineType.NIM else word


@dataclass(frozen=True, slots=True)
class PullDefaults:
    """Rates of a node without annotations, and the time a pull takes if the image is there."""

    registry_bytes_per_s: float
    unpack_bytes_per_s: float
    network_bytes_per_s: float
    cached_s: float


def split(reference: str) -> tuple[str, str]:
    """Repository and tag (``latest`` if none) of an image reference; a digest is dropped."""
    name = reference.partition("@")[0]
    head, slash, last = name.rpartition("/")
    repository, _, tag = last.partition(":")
    return f"{head}{slash}{repository}", tag or "latest"


def canonical(image: str) -> str:
    """The full name of an image: registry and tag filled in, as the runtime lists it."""
    first, slash, _ = image.partition("/")
    if not slash:
        image = f"docker.io/library/{image}"
    elif "." not in first and ":" not in first and first != "localhost":
        image = f"docker.io/{image}"
    tail = image.rpartition("/")[2]
    return image if ":" in tail or "@" in tail else f"{image}:latest"


def find(reference: str) -> Image | None:
    """The catalogue's image of that repository, whatever the tag or mirror; None if unknown.

    A mirror is a reference that ends in a known repository (``mirror.local/vllm/vllm-openai``) or
    in its last word (``mirror.local/vllm-openai``), and all NIM images share one entry.
    """
    repository = split(reference)[0].lower().removeprefix("docker.io/")
    for image in all_images():
        if repository == image.repository or repository.endswith("/" + image.repository):
            return image
    if "/nim/" in "/" + repository:
        return of_engine(EngineType.NIM)
    last = repository.rsplit("/", 1)[-1]
    return next((image for image in all_images() if image.distinctive_word == last), None)


def of_engine(engine: EngineType, amd: bool = False) -> Image:
    """The default image of an engine; for AMD GPUs its ROCm build where there is one."""
    candidates = [image for image in all_images() if image.engine == engine]
    return next((image for image in candidates if image.amd == amd), candidates[0])


@functools.cache
def all_images() -> tuple[Image, ...]:
    """Every image of the catalogue, in the file's order."""
    return tuple(_from_entry(entry) for entry in files.load("images")["images"])


@functools.cache
def pull_defaults() -> PullDefaults:
    """Rates that hold where a node's annotations are missing, in bytes per second."""
    document = files.load("images")
    node = document["node_defaults"]
    return PullDefaults(
        registry_bytes_per_s=node["registry_mb_s"]["value"] * 1e6,
        unpack_bytes_per_s=node["unpack_mb_s"]["value"] * 1e6,
        network_bytes_per_s=node["network_gb_s"]["value"] * 1e9,
        cached_s=document["cached_pull_s"]["value"],
    )


def _from_entry(entry: Mapping[str, Any]) -> Image:
    return Image(
        repository=entry["repository"],
        tag=entry["tag"]["value"],
        engine=EngineType(entry["engine"]),
        amd=bool(entry.get("amd", False)),
        compressed_bytes=round(entry["compressed_gb"]["value"] * 1e9),
        unpacked_bytes=round(entry["unpacked_gb"]["value"] * 1e9),
        largest_layer_share=entry["largest_layer_share"]["value"],
    )
