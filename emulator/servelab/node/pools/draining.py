"""How an emulated node goes: cordoned and tainted, emptied, and after its notice switched off.

The Node's annotation tells since when and until when, so that a restart goes on with it.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from modelserve import errors, ports
from modelserve.api import names, timestamps
from modelserve.api.pool import PoolDrain
from servelab.node.pools import elastic

log = logging.getLogger(__name__)

# What cluster-autoscaler puts on a node it takes away; the value is the time it began.
TAINT = "ToBeDeletedByClusterAutoscaler"
# What a cloud's termination handler puts on one whose machine is taken back.
SPOT_TAINT = "aws-node-termination-handler/spot-itn"
# A pod bound while the taint was on its way is seen by then.
SETTLE_REAL_S = 1.0
# How the API server answers an eviction that a disruption budget forbids.
TOO_MANY = 429


@dataclass(frozen=True, slots=True)
class Drainer:
    """Takes nodes away. Times are Unix seconds, real."""

    cluster: ports.Cluster
    sink: ports.EventSink | None = None
    taint: str = TAINT

    async def begin(self, node: ports.Object, now_s: float, notice_real_s: float) -> None:
        """Cordon and taint it; what is on it has until the notice is over."""
        taints = [t for t in node["spec"].get("taints") or () if t["key"] != self.taint]
        taints.append({"key": self.taint, "value": str(int(now_s)), "effect": "NoSchedule"})
        gone_at = f"{now_s + max(notice_real_s, SETTLE_REAL_S):.3f}"
        body = {
            "metadata": {"annotations": {names.GONE_AT: gone_at}},
            "spec": {"unschedulable": True, "taints": taints},
        }
        await self._patch(node, body)
        self._tell(node, "ScaleDown", "marked the node as toBeDeleted/unschedulable")

    async def give_up(self, node: ports.Object) -> None:
        """Take cordon and taint back: somebody needs the node after all."""
        taints = [t for t in node["spec"].get("taints") or () if t["key"] != TAINT]
        body = {
            "metadata": {"annotations": {names.GONE_AT: None}},
            "spec": {"unschedulable": None, "taints": taints},
        }
        await self._patch(node, body)
        self._tell(node, "ScaleDownFailed", "a pod came while the node was being taken away")

    async def go_on(self, node: ports.Object, pods: Iterable[ports.Object], now_s: float) -> bool:
        """Evict its pods, then delete the node; returns whether it is gone.

        A pod that a disruption budget holds is asked again each time, until the notice is over.
        """
        left = [pod for pod in pods if elastic.holds_node(pod)]
        ends_s = gone_at_s(node) or now_s
        began_s = float(
            next((t["value"] for t in _taints(node) if t["key"] in (TAINT, SPOT_TAINT)), 0)
        )
        # Only a spot machine stays until its time, whatever runs there.
        early = self.taint == TAINT and not left and now_s >= began_s + SETTLE_REAL_S
        if now_s >= ends_s or early:
            return await self._off(node)
        for pod in left:
            # Who came back to a machine that goes, by tolerating everything, is not asked again.
            late = self.taint == SPOT_TAINT and _created_s(pod) > began_s
            if not pod["metadata"].get("deletionTimestamp") and not late:
                await self._evict(pod)
        return False

    async def _off(self, node: ports.Object) -> bool:
        meta = node["metadata"]
        try:
            await self.cluster.delete(ports.NODES, None, meta["name"], uid=meta["uid"])
        except errors.NotFound:
            log.debug("node %s is gone already", meta["name"])
        except errors.Conflict:
            return False  # Another of its name, as the watch will tell; or a server in trouble.
        self._tell(node, "ScaleDown", "node removed by cluster autoscaler")
        return True

    async def _evict(self, pod: ports.Object) -> None:
        meta = pod["metadata"]
        name, namespace = meta["name"], meta["namespace"]
        try:
            await self.cluster.create(
                ports.eviction(name), namespace, ports.eviction_body(name, namespace, meta["uid"])
            )
        except (errors.NotFound, errors.Conflict):
            log.debug("pod %s/%s is gone already", namespace, name)
        except errors.Unavailable as error:
            if error.status != TOO_MANY:
                raise
            self._tell(pod, "ScaleDownFailed", "failed to delete pod for ScaleDown")
        else:
            self._tell(pod, "ScaleDown", "deleting pod for node scale down")

    async def lost(self, pods: Iterable[ports.Object]) -> None:
        """Their node is no more: a cloud's node controller removes what was on it."""
        for pod in pods:
            meta = pod["metadata"]
            namespace, name, uid = meta["namespace"], meta["name"], meta["uid"]
            try:
                await self.cluster.delete(ports.PODS, namespace, name, grace_s=0, uid=uid)
            except (errors.NotFound, errors.Conflict):
                log.debug("pod %s/%s is gone already", namespace, name)

    async def _patch(self, node: ports.Object, body: dict[str, Any]) -> None:
        try:
            await self.cluster.patch(ports.NODES, None, node["metadata"]["name"], body)
        except errors.NotFound:
            log.debug("node %s is gone", node["metadata"]["name"])

    def _tell(self, subject: ports.Object, reason: str, message: str) -> None:
        if self.sink is not None:
            kind = "Pod" if "containers" in (subject.get("spec") or {}) else "Node"
            self.sink.emit({"apiVersion": "v1", "kind": kind, **subject}, "Normal", reason, message)


def gone_at_s(node: ports.Object) -> float | None:
    """When its notice is over; None for a node that stays."""
    text = (node["metadata"].get("annotations") or {}).get(names.GONE_AT)
    try:
        return float(text) if text else None
    except ValueError:
        return None


def notice_s(node: ports.Object) -> float:
    """How long it has once it is to go, emulated seconds: as its pool said last."""
    text = (node["metadata"].get("annotations") or {}).get(names.DRAIN_NOTICE)
    try:
        return max(0.0, float(text)) if text else PoolDrain().notice_seconds
    except ValueError:
        return PoolDrain().notice_seconds


def _created_s(pod: ports.Object) -> float:
    return timestamps.parse_if_any(pod["metadata"].get("creationTimestamp")) or 0.0


def is_reclaimed(node: ports.Object) -> bool:
    """Whether the cloud takes its machine back, whatever the pool wants."""
    return any(taint["key"] == SPOT_TAINT for taint in _taints(node))


def _taints(node: ports.Object) -> Iterable[dict[str, Any]]:
    found: Iterable[dict[str, Any]] = node["spec"].get("taints") or ()
    return found
