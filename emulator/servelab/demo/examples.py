"""The example manifests, in a checkout or in an installed package, and how to apply them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from modelserve import errors, ports

PACKAGED = Path(__file__).parents[1] / "examples"
CHECKOUT = Path(__file__).parents[3] / "examples"
FIELD_MANAGER = "servelab-demo"

KINDS = {
    resource.kind: resource for resource in (ports.GPUPOOLS, ports.MODELSERVES, ports.DEPLOYMENTS)
}


def directory() -> Path:
    """Where the manifests are: inside the package where it came as a wheel, else in the checkout.

    Raises SetUpError if neither is there.
    """
    for candidate in (PACKAGED, CHECKOUT):
        if candidate.is_dir():
            return candidate
    raise errors.SetUpError(
        "this installation has no example manifests: install the package again, or work in a "
        "whole checkout"
    )


def load(name: str) -> Sequence[dict[str, Any]]:
    """The documents of one example, such as ``gpu-pool.yaml``."""
    return [one for one in yaml.safe_load_all((directory() / name).read_text()) if one]


async def apply(
    cluster: ports.Cluster, documents: Sequence[dict[str, Any]], namespace: str = "default"
) -> None:
    """Apply documents, as kubectl would. Any ClusterError is the API server's own."""
    for document in documents:
        resource = KINDS[document["kind"]]
        name = document["metadata"]["name"]
        where = namespace if resource.namespaced else None
        await cluster.apply(resource, where, name, document, manager=FIELD_MANAGER)
