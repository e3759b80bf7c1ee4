"""Keeps the Nodes that GPUPools ask for, and the pools' status."""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pydantic

from modelserve import errors, ports
from modelserve.adapters import cache
from modelserve.api import conditions, names, timestamps
from modelserve.api import pods as pod_facts
from modelserve.api.pool import GPUPoolSpec
from modelserve.catalog import gpus
from servelab.node import registration

log = logging.getLogger(__name__)


class PoolKeeper:
    """Level-triggered: ``reconcile`` brings every pool to what it asks for; call it at changes."""

    def __init__(
        self,
        cluster: ports.Cluster,
        pools: cache.Store,
        nodes: cache.Store,
        kubelet: registration.Kubelet,
        unix_s: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._pools = pools
        self._nodes = nodes
        self._kubelet = kubelet
        self._unix_s = unix_s

    def spec(self, pool_name: str) -> GPUPoolSpec | None:
        """The pool's spec; None if there is no such pool or it cannot be read."""
        found = self._pools.get(None, pool_name)
        try:
            return None if found is None else GPUPoolSpec.model_validate(found["spec"])
        except pydantic.ValidationError:
            return None

    async def reconcile(self, pods: Iterable[ports.Object]) -> None:
        """Create, change and remove nodes; write the status. Raises ClusterError."""
        requests = gpus_by_node(pods)
        for owner in self._pools.items():
            if not owner["metadata"].get("deletionTimestamp"):
                await self._keep(owner, requests)
        await self._remove_orphans()

    async def refresh(self, node: ports.Object, images: list[dict[str, Any]]) -> None:
        """Write a node's status: heartbeat, images, kubelet address."""
        pool_name = node["metadata"]["labels"].get(names.LABEL_POOL, "")
        spec = self.spec(pool_name)
        try:
            gpu = None if spec is None else gpus.find(spec.gpu)
        except errors.UnknownName:
            gpu = None  # The pool was changed to a GPU that nobody knows; its status says so.
        if spec is None or gpu is None:
            return
        name = node["metadata"]["name"]
        status = registration.render_status(name, spec, gpu, self._kubelet)
        status["conditions"] = registration.render_conditions(node, self._unix_s())
        await self._patch_status(name, status | {"images": images})

    async def _keep(self, owner: ports.Object, requests: Mapping[str, int]) -> None:
        name = owner["metadata"]["name"]
        try:
            spec = GPUPoolSpec.model_validate(owner["spec"])
            gpu = gpus.find(spec.gpu)
            registration.render_annotations(spec)
        except (pydantic.ValidationError, errors.InputError) as error:
            text = str(error) if isinstance(error, errors.InputError) else _sentence(error)
            await self._write_status(owner, 0, 0, {}, ("False", "InvalidSpec", text))
            return
        wanted = registration.node_names(name, spec)
        for node_name in wanted:
            found = self._nodes.get(None, node_name)
            if found is None:
                await self._create(owner, spec, node_name, gpu)
            elif found["metadata"]["labels"].get(names.LABEL_POOL) == name:
                await self._correct(owner, spec, found, gpu)
        for node in self._of_pool(name):
            if node["metadata"]["name"] not in wanted:
                await self._delete(node)
        await self._report(owner, spec, wanted, requests)

    async def _create(
        self, owner: ports.Object, spec: GPUPoolSpec, name: str, gpu: gpus.Gpu
    ) -> None:
        body = registration.render_node(owner, spec, name, gpu)
        status = registration.render_status(name, spec, gpu, self._kubelet)
        status["conditions"] = registration.render_conditions({}, self._unix_s())
        try:
            await self._cluster.create(ports.NODES, None, body | {"status": status})
        except errors.Conflict:
            log.debug("node %s is there already", name)

    async def _correct(
        self, owner: ports.Object, spec: GPUPoolSpec, node: ports.Object, gpu: gpus.Gpu
    ) -> None:
        meta = node["metadata"]
        labels = registration.render_labels(owner["metadata"]["name"], spec, meta["name"], gpu)
        annotations = registration.render_annotations(spec)
        wrong = (
            _differing(meta["labels"], labels),
            _differing(meta.get("annotations") or {}, annotations),
        )
        if any(wrong):
            body = {"metadata": {"labels": wrong[0], "annotations": wrong[1]}}
            await self._cluster.patch(ports.NODES, None, meta["name"], body)
        status = registration.render_status(meta["name"], spec, gpu, self._kubelet)
        known = node.get("status") or {}
        if not conditions.is_true(node, "Ready"):
            # A lapse of ours: the node controller thinks it dead.
            status["conditions"] = registration.render_conditions(node, self._unix_s())
        if any(known.get(key) != value for key, value in status.items()):
            await self._patch_status(meta["name"], status)

    async def _remove_orphans(self) -> None:
        pools = {pool["metadata"]["name"]: pool["metadata"]["uid"] for pool in self._pools.items()}
        for node in self._nodes.items():
            owner = node["metadata"]["labels"].get(names.LABEL_POOL)
            if owner is not None and owner not in pools:
                # The garbage collector does this too; but it may be slow, or switched off.
                await self._delete(node)

    async def _delete(self, node: ports.Object) -> None:
        meta = node["metadata"]
        if meta.get("deletionTimestamp"):
            return
        try:
            await self._cluster.delete(ports.NODES, None, meta["name"], uid=meta["uid"])
        except (errors.NotFound, errors.Conflict):
            log.debug("node %s is gone already", meta["name"])

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

    def _of_pool(self, name: str) -> list[ports.Object]:
        found = self._nodes.items()
        return [n for n in found if n["metadata"]["labels"].get(names.LABEL_POOL) == name]

    async def _report(
        self,
        owner: ports.Object,
        spec: GPUPoolSpec,
        wanted: tuple[str, ...],
        requests: Mapping[str, int],
    ) -> None:
        nodes = self._of_pool(owner["metadata"]["name"])
        ready = sum(conditions.is_true(node, "Ready") for node in nodes)
        in_use = sum(requests.get(node["metadata"]["name"], 0) for node in nodes)
        if ready == len(nodes) == len(wanted):
            condition = ("True", "NodesReady", f"all {ready} nodes are ready")
        else:
            condition = ("False", "NodesNotReady", f"{ready} of {len(wanted)} nodes are ready")
        numbers = {"gpus": len(nodes) * spec.gpus_per_node, "gpusInUse": in_use}
        await self._write_status(owner, len(nodes), ready, numbers, condition)

    async def _write_status(
        self,
        owner: ports.Object,
        nodes: int,
        ready: int,
        numbers: Mapping[str, int],
        condition: tuple[str, str, str],
    ) -> None:
        meta, known = owner["metadata"], owner.get("status") or {}
        status, reason, message = condition
        old = conditions.find(owner, "Ready")
        since = old.get("lastTransitionTime") if old.get("status") == status else None
        body = {
            "observedGeneration": meta.get("generation", 1),
            "nodes": nodes,
            "readyNodes": ready,
            "gpus": 0,
            "gpusInUse": 0,
            **numbers,
            "conditions": [
                {
                    "type": "Ready",
                    "status": status,
                    "reason": reason,
                    "message": message,
                    "lastTransitionTime": since or timestamps.format_time(self._unix_s()),
                    "observedGeneration": meta.get("generation", 1),
                }
            ],
        }
        if body != known:
            try:
                await self._cluster.patch(
                    ports.GPUPOOLS, None, meta["name"], {"status": body}, subresource="status"
                )
            except errors.NotFound:
                log.debug("pool %s is gone", meta["name"])


def gpus_by_node(pods: Iterable[ports.Object]) -> Mapping[str, int]:
    """GPUs requested by the pods of each node that have not ended."""
    counts: dict[str, int] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName", "")
        if node and not pod_facts.is_over(pod):
            counts[node] = counts.get(node, 0) + sum(pod_facts.gpus(pod).values())
    return counts


def _differing(found: Mapping[str, str], wanted: Mapping[str, str | None]) -> dict[str, str | None]:
    return {key: value for key, value in wanted.items() if found.get(key) != value}


def _sentence(error: pydantic.ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"spec.{where}: {first['msg']}"
