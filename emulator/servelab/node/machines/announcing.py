"""What kubelets tell of their nodes: that they start, with a CSINode each, and what is cordoned.

As kubelet 1.37.2 does it, recorded.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from typing import Any

from modelserve import errors, ports
from modelserve.adapters import backoff
from modelserve.api import timestamps
from servelab.node.machines import machine
from servelab.node.pools import registration

log = logging.getLogger(__name__)

# A kubelet looks at its node with each computation of its status.
LOOK_REAL_S = 10.0
# Many nodes that come at once are all there before the first of them tells of it.
SETTLE_REAL_S = 1.0
AGAIN_REAL_S = 5.0
PAUSE_FIRST_REAL_S, PAUSE_MOST_REAL_S = 0.5, 10.0
# Nodes that tell of their start at once, each one write after the other: nobody waits for these.
AT_ONCE = 4
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
# Which in-tree volume plugins have moved to CSI, as every kubelet of 1.37 says.
_MIGRATED = (
    *("aws-ebs", "azure-disk", "azure-file", "cinder", "gce-pd", "portworx-volume"),
    "vsphere-volume",
)


class Announcer:
    """Of all nodes that the process plays. ``run`` it; ``came`` names one that is played now."""

    def __init__(
        self,
        cluster: ports.Cluster,
        clock: ports.Clock,
        nodes: Mapping[str, machine.Machine],
        cut_off: Callable[[str], bool],
    ) -> None:
        """What a node says that is ``cut_off`` reaches nobody."""
        self._cluster = cluster
        self._clock = clock
        self._nodes = nodes
        self._cut_off = cut_off
        # UIDs of those whose CSINode is still to be written, by name.
        self._told: dict[str, str] = {}
        self._came: asyncio.Queue[tuple[str, float]] = asyncio.Queue()

    @property
    def remembered(self) -> int:
        """Nodes of which something is still to be told."""
        return len(self._told)

    def came(self, name: str, wait_real_s: float = SETTLE_REAL_S) -> None:
        """Tell of its start, if that was not told before."""
        self._came.put_nowait((name, self._clock.real_s() + wait_real_s))

    async def run(self) -> None:
        """For ever."""
        await asyncio.gather(*(self._starts() for _ in range(AT_ONCE)), self._cordons())

    async def _starts(self) -> None:
        pause = backoff.Backoff(random.Random(), PAUSE_FIRST_REAL_S, PAUSE_MOST_REAL_S)
        while True:
            name, due_real_s = await self._came.get()
            await self._clock.sleep_real(max(0.0, due_real_s - self._clock.real_s()))
            if not await self._is_told(name, pause):
                self.came(name, AGAIN_REAL_S)

    async def _is_told(self, name: str, pause: backoff.Backoff) -> bool:
        """Tell of the node's start; whether nothing is left to tell."""
        known = self._nodes.get(name)
        if known is None:
            self._told.pop(name, None)
            return True
        try:
            done = not self._cut_off(name) and await self._start(known)
            pause.reset()
        except errors.ClusterError as error:
            # Not of this node alone: the others wait as well.
            log.debug("start of node %s: %s", name, error)
            done = False
            wish_real_s = getattr(error, "retry_after_s", None) or 0.0
            await self._clock.sleep_real(max(pause.next_real_s(), wish_real_s))
        return done

    async def _start(self, known: machine.Machine) -> bool:
        """The CSINode comes last: where there is one, all has been told."""
        meta = known.object["metadata"]
        try:
            found = await self._cluster.get(ports.CSI_NODES, None, known.name)
            owners = (owner["uid"] for owner in found["metadata"].get("ownerReferences") or ())
            return meta["uid"] in owners  # Else it goes, with a node of that name that is gone.
        except errors.NotFound:
            if self._told.get(known.name) != meta["uid"]:
                self._told[known.name] = meta["uid"]
                tell_start(known)
            await known.sink.flush()
            await self._cluster.create(ports.CSI_NODES, None, render_csi_node(known.object))
            self._told.pop(known.name, None)
            return True

    async def _cordons(self) -> None:
        while True:
            await self._clock.sleep_real(LOOK_REAL_S)
            for known in self._nodes.values():
                cordoned = bool(known.object["spec"].get("unschedulable"))
                if cordoned != known.cordoned and not self._cut_off(known.name):
                    known.cordoned = cordoned
                    tell(known, "NodeNotSchedulable" if cordoned else "NodeSchedulable")


def tell_start(known: machine.Machine) -> None:
    """The events of a kubelet that starts. Until it is registered, it does not know the UID."""
    meta = known.object["metadata"]
    at_s = timestamps.parse_if_any(meta.get("creationTimestamp"))
    nameless = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": known.name}}
    *before, ready = registration.WELL
    said = [
        ("Starting", "Starting kubelet."),
        *((reason, _is_now(known, reason)) for reason in before),
        ("NodeAllocatableEnforced", "Updated Node Allocatable limit across pods"),
    ]
    for reason, message in said:
        known.sink.emit(nameless, "Normal", reason, message, at_wall_s=at_s)
    tell(known, ready, at_s)


def tell(known: machine.Machine, reason: str, at_s: float | None = None) -> None:
    """That is what the node is now; at that Unix time, or at once."""
    subject = {"apiVersion": "v1", "kind": "Node", **known.object}
    known.sink.emit(subject, "Normal", reason, _is_now(known, reason), at_wall_s=at_s)


def render_csi_node(node: ports.Object) -> dict[str, Any]:
    """Without drivers, as long as nobody installs one."""
    meta = node["metadata"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": meta["name"], "uid": meta["uid"]}
    plugins = ",".join(f"kubernetes.io/{plugin}" for plugin in _MIGRATED)
    return {
        "metadata": {
            "name": meta["name"],
            "annotations": {MIGRATED: plugins},
            "ownerReferences": [owner],
        },
        "spec": {"drivers": []},
    }


def _is_now(known: machine.Machine, reason: str) -> str:
    return f"Node {known.name} status is now: {reason}"
