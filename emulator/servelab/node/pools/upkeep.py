"""Writes the Nodes of a pool: creates them, corrects them, keeps their status fresh."""

import contextlib
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

from modelserve import errors, ports
from modelserve.api import conditions, names
from modelserve.api.pool import GPUPoolSpec
from modelserve.catalog import gpus
from servelab.node.faults import ailments
from servelab.node.gpus import claims, labels
from servelab.node.pools import growth, registration
from servelab.node.pools.growth import NEVER

log = logging.getLogger(__name__)

# Labels under these are ours: one that is no longer wanted goes.
_OUR_LABELS = ("nvidia.com/", "amd.com/", "beta.amd.com/")


class Upkeep:
    """Of all nodes of the process. Times are Unix seconds, real."""

    def __init__(
        self, cluster: ports.Cluster, kubelet: registration.Kubelet, unix_s: Callable[[], float]
    ) -> None:
        self._cluster = cluster
        self._kubelet = kubelet
        self._unix_s = unix_s
        self.ailing: Callable[[str], ailments.Ailment] = lambda name: ailments.WELL
        self._published: dict[str, int] = {}  # GPUs in a slice, by the node's UID
        # What nodes were like, by UID, when nothing was wrong with them.
        self._right: dict[str, tuple[object, ...] | None] = {}

    @property
    def remembered(self) -> int:
        """How many nodes something is remembered of, those that are gone too."""
        return max(len(self._right), len(self._published))

    def keep(self, uids: Collection[str]) -> None:
        """Remember nothing of other nodes than these."""
        self._right = {uid: look for uid, look in self._right.items() if uid in uids}
        self._published = {uid: gpus for uid, gpus in self._published.items() if uid in uids}

    async def refresh(
        self,
        node: ports.Object,
        spec: GPUPoolSpec,
        gpu: gpus.Gpu,
        images: list[dict[str, Any]],
        annotations: Mapping[str, str | None],
    ) -> None:
        """Heartbeat, images, kubelet address, and annotations that differ."""
        name = node["metadata"]["name"]
        ailment = self.ailing(name)
        if ailment.cut_off:
            return
        wrong = _differing(node["metadata"].get("annotations") or {}, annotations)
        if wrong:
            await self._patch(name, {"metadata": {"annotations": wrong}})
        status = registration.render_status(
            name, spec, gpu, self._kubelet, advertised=growth.is_advertised(node)
        )
        status = ailments.allocatable(status, ailment)
        status["conditions"] = registration.render_conditions(node, self._unix_s())
        if spec.devices == "DRA":
            await self._miss_slice(node, spec, gpu)
        await self._patch_status(name, status | {"images": images})

    async def create(
        self,
        owner: ports.Object,
        spec: GPUPoolSpec,
        name: str,
        gpu: gpus.Gpu,
        devices_at_s: float | None,
    ) -> None:
        body = registration.render_node(owner, spec, name, gpu, devices_at_s=devices_at_s)
        if devices_at_s is None and not gpu.amd:
            body["metadata"]["labels"][labels.TIMESTAMP] = str(int(self._unix_s()))
        status = registration.render_status(
            name, spec, gpu, self._kubelet, advertised=devices_at_s is None
        )
        status["conditions"] = registration.render_conditions({}, self._unix_s())
        try:
            await self._cluster.create(ports.NODES, None, body | {"status": status})
        except errors.Conflict:
            log.debug("node %s is there already", name)

    async def correct(
        self,
        owner: ports.Object,
        spec: GPUPoolSpec,
        node: ports.Object,
        gpu: gpus.Gpu,
        usable: int = 0,
    ) -> float:
        """Bring a node to what the pool says; returns when its GPUs come, if they are to.

        ``usable`` are the nodes of the pool that have theirs.
        """
        meta = node["metadata"]
        ailment = self.ailing(meta["name"])
        if self.is_right(owner, spec, node, usable):
            return NEVER
        growing = registration.growth_annotation(spec, usable)
        devices_at_s = registration.devices_at_s(node)
        advertised = devices_at_s is None or devices_at_s <= self._unix_s()
        # Labels come with the capacity, not before it.
        wrong = await self._correct_status(spec, node, gpu, ailment, advertised=advertised)
        pool_name = owner["metadata"]["name"]
        wrong |= await self._correct_meta(
            pool_name, spec, node, gpu, growing, advertised=advertised
        )
        if spec.devices == "DRA":
            await self._publish(node, spec, gpu, advertised=advertised)
        elif self._published.pop(meta["uid"], 0):
            name = claims.render_slice(node, spec, gpu)["metadata"]["name"]
            with contextlib.suppress(errors.NotFound):
                await self._cluster.delete(ports.RESOURCE_SLICES, None, name)
        if advertised and not wrong:
            self._right[meta["uid"]] = self._look(owner, spec, node, usable)
        return NEVER if advertised or devices_at_s is None else devices_at_s

    def is_right(
        self, owner: ports.Object, spec: GPUPoolSpec, node: ports.Object, usable: int
    ) -> bool:
        """Whether the node is known to be what the pool says, or cannot be reached."""
        look = self._look(owner, spec, node, usable)
        if look is None or not look[0]:
            return look is None
        return self._right.get(node["metadata"]["uid"]) == look

    def _look(
        self, owner: ports.Object, spec: GPUPoolSpec, node: ports.Object, usable: int
    ) -> tuple[object, ...] | None:
        """What a node's rightness depends on; None for one that is cut off."""
        meta = node["metadata"]
        ailment = self.ailing(meta["name"])
        if ailment.cut_off:
            return None
        growing = registration.growth_annotation(spec, usable)
        generation = owner["metadata"].get("generation")
        return meta.get("resourceVersion"), generation, *growing.values(), ailment

    async def _correct_status(
        self,
        spec: GPUPoolSpec,
        node: ports.Object,
        gpu: gpus.Gpu,
        ailment: ailments.Ailment,
        *,
        advertised: bool,
    ) -> bool:
        """Returns whether anything was wrong."""
        name = node["metadata"]["name"]
        status = registration.render_status(name, spec, gpu, self._kubelet, advertised=advertised)
        status = ailments.allocatable(status, ailment)
        known = node.get("status") or {}
        if not conditions.is_true(node, "Ready"):
            # A lapse of ours: the node controller thinks it dead.
            status["conditions"] = registration.render_conditions(node, self._unix_s())
        wrong = any(known.get(key) != value for key, value in status.items())
        if wrong:
            await self._patch_status(name, _without_stale(known, status))
        return wrong

    async def _correct_meta(
        self,
        pool_name: str,
        spec: GPUPoolSpec,
        node: ports.Object,
        gpu: gpus.Gpu,
        growing: Mapping[str, str | None],
        *,
        advertised: bool,
    ) -> bool:
        """Labels and annotations; returns whether anything was wrong."""
        meta = node["metadata"]
        wanted: dict[str, str | None] = {
            label: None
            for label in meta["labels"]
            if label.startswith(_OUR_LABELS) and label != labels.TIMESTAMP
        }
        wanted |= registration.render_labels(
            pool_name, spec, meta["name"], gpu, advertised=advertised
        )
        if advertised and not gpu.amd and labels.TIMESTAMP not in meta["labels"]:
            wanted[labels.TIMESTAMP] = str(int(self._unix_s()))
        annotations = {**registration.render_annotations(spec), **growing}
        annotations |= registration.render_notes(meta["name"], spec, gpu)
        if advertised:
            annotations[names.DEVICES_AT] = None
        wrong = {
            "labels": _differing(meta["labels"], wanted),
            "annotations": _differing(meta.get("annotations") or {}, annotations),
        }
        if any(wrong.values()):
            await self._patch(meta["name"], {"metadata": wrong})
        return any(wrong.values())

    async def _publish(
        self, node: ports.Object, spec: GPUPoolSpec, gpu: gpus.Gpu, *, advertised: bool
    ) -> None:
        """The node's ResourceSlice and its class, once; a changed one in a new generation."""
        uid = node["metadata"]["uid"]
        if not advertised or self._published.get(uid) == spec.gpus_per_node:
            return
        body = claims.render_slice(node, spec, gpu)
        name = body["metadata"]["name"]
        with contextlib.suppress(errors.Conflict):
            await self._cluster.create(ports.DEVICE_CLASSES, None, claims.render_class())
        try:
            await self._cluster.create(ports.RESOURCE_SLICES, None, body)
        except errors.Conflict:
            known = await self._cluster.get(ports.RESOURCE_SLICES, None, name)
            body["spec"]["pool"]["generation"] = known["spec"]["pool"]["generation"]
            if known["spec"].get("devices") != body["spec"]["devices"]:
                body["spec"]["pool"]["generation"] += 1
            await self._cluster.patch(ports.RESOURCE_SLICES, None, name, body)
        self._published[uid] = spec.gpus_per_node

    async def _miss_slice(self, node: ports.Object, spec: GPUPoolSpec, gpu: gpus.Gpu) -> None:
        """A ResourceSlice that somebody deleted is published again with what comes next."""
        name = claims.render_slice(node, spec, gpu)["metadata"]["name"]
        try:
            await self._cluster.get(ports.RESOURCE_SLICES, None, name)
        except errors.NotFound:
            self._published.pop(node["metadata"]["uid"], None)

    async def _patch(self, name: str, body: Mapping[str, Any]) -> None:
        try:
            await self._cluster.patch(ports.NODES, None, name, body)
        except errors.NotFound:
            log.debug("node %s is gone", name)

    async def _patch_status(self, name: str, status: Mapping[str, Any]) -> None:
        try:
            await self._cluster.patch(
                ports.NODES,
                None,
                name,
                {"status": dict(status)},
                content_type=ports.STRATEGIC_PATCH,
                subresource="status",
            )
        except errors.NotFound:
            log.debug("node %s is gone", name)


def _differing(found: Mapping[str, str], wanted: Mapping[str, str | None]) -> dict[str, str | None]:
    return {key: value for key, value in wanted.items() if found.get(key) != value}


def _without_stale(known: Mapping[str, Any], status: Mapping[str, Any]) -> dict[str, Any]:
    """The status as a patch that also takes away what the node no longer has."""
    found = dict(status)
    types = {entry["type"] for entry in status["addresses"]}
    if any(entry["type"] not in types for entry in known.get("addresses") or ()):
        found["addresses"] = [*status["addresses"], {"$patch": "replace"}]
    for key in ("capacity", "allocatable"):
        gone = dict.fromkeys((known.get(key) or {}).keys() - status[key].keys())
        found[key] = {**gone, **status[key]}
    return found
