"""Writes Deployment, Service and replica count, each by the field manager that owns it."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from modelserve import errors, ports
from modelserve.api import names
from modelserve.api.keys import Key
from modelserve.render import labels, replica_owner


class ForeignObject(errors.ModelServeError):
    """An object with the name of a child of ours belongs to somebody else."""


@dataclass(slots=True)
class Applied:
    """What was last applied for one ModelServe, so that nothing is applied twice for nothing."""

    rendered: dict[str, str] = field(default_factory=dict)  # digest of our document, by kind
    live: dict[str, str] = field(default_factory=dict)  # digest of what came of it, by kind


class Children:
    """The writing side, for one cluster. All methods raise the ClusterError family."""

    def __init__(self, cluster: ports.Cluster) -> None:
        self._cluster = cluster

    async def create_deployment(self, key: Key, rendered: ports.Object) -> ports.Object:
        """The first apply, with ``replicas: 0``, unforced: it loses against anybody who has it.

        Raises Conflict if it is there, and ForeignObject if one of that name is somebody else's.
        """
        if await self._exists(ports.DEPLOYMENTS, key, rendered):
            raise errors.Conflict(f"the Deployment {key} is there already")
        return await self._cluster.apply(
            ports.DEPLOYMENTS, key.namespace, key.name, rendered, manager=names.MANAGER
        )

    async def apply_deployment(
        self, key: Key, live: ports.Object, rendered: ports.Object
    ) -> ports.Object:
        """A later apply. With ``replicas``, which the main manager then owns, it is unforced."""
        carries_replicas = "replicas" in rendered["spec"]
        if live["metadata"]["uid"] != rendered["metadata"].get("uid"):
            raise errors.Conflict(f"the Deployment {key} was replaced meanwhile")
        return await self._cluster.apply(
            ports.DEPLOYMENTS,
            key.namespace,
            key.name,
            rendered,
            manager=names.MANAGER,
            force=not carries_replicas,
        )

    async def apply_service(self, key: Key, rendered: ports.Object) -> ports.Object:
        """The headless Service. Raises ForeignObject if it is not the ModelServe's."""
        await self._exists(ports.SERVICES, key, rendered)
        return await self._cluster.apply(
            ports.SERVICES, key.namespace, key.name, rendered, manager=names.MANAGER, force=True
        )

    async def scale(self, key: Key, live: ports.Object, replicas: int) -> ports.Object:
        """Write ``/scale`` by the scaler's manager. Returns the Scale.

        Forced while the main manager owns the count (right after creation) or nobody does. Raises
        Conflict if somebody else owns it, or the Deployment was replaced.
        """
        force = replica_owner.is_to_be_taken(live)
        return await self._write_scale(key, live, replicas, force=force)

    async def retake(self, key: Key, live: ports.Object, replicas: int) -> ports.Object:
        """Write ``/scale`` by force: the count was somebody else's."""
        return await self._write_scale(key, live, replicas, force=True)

    async def _write_scale(
        self, key: Key, live: ports.Object, replicas: int, *, force: bool
    ) -> ports.Object:
        body = {
            "metadata": {"name": key.name, "uid": live["metadata"]["uid"]},
            "spec": {"replicas": replicas},
        }
        return await self._cluster.apply(
            ports.DEPLOYMENTS,
            key.namespace,
            key.name,
            body,
            manager=names.SCALER,
            force=force,
            subresource="scale",
        )

    async def _exists(self, resource: ports.Resource, key: Key, rendered: ports.Object) -> bool:
        """Whether it is there, ours or an orphan that an apply adopts. Raises ForeignObject."""
        try:
            found = await self._cluster.get(resource, key.namespace, key.name)
        except errors.NotFound:
            return False
        uid = rendered["metadata"]["ownerReferences"][0]["uid"]
        if not (labels.owned_by(found, {"metadata": {"uid": uid}}) or labels.is_orphan(found)):
            raise ForeignObject(
                f"a {resource.kind} named {key.name} in namespace {key.namespace} belongs to "
                "somebody else: delete it, or give the ModelServe another name"
            )
        return True


def rendered_digest(document: ports.Object) -> str:
    """Of a document of ours."""
    return _digest(document)


def live_digest(live: ports.Object) -> str:
    """Of the parts of a live object that our applies set, the replica count left aside."""
    metadata = live["metadata"]
    spec = {name: value for name, value in live.get("spec", {}).items() if name != "replicas"}
    annotations = metadata.get("annotations") or {}
    return _digest(
        {
            "uid": metadata["uid"],
            "labels": metadata.get("labels"),
            "owners": metadata.get("ownerReferences"),
            "resolved": annotations.get(names.RESOLVED),
            "spec": spec,
        }
    )


def _digest(document: Any) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
