"""Node Leases: renewed every 10 real seconds, spread over the nodes."""

import logging
import zlib
from collections.abc import Callable

from modelserve import errors, ports
from modelserve.api import timestamps

log = logging.getLogger(__name__)

NAMESPACE = "kube-node-lease"
PERIOD_REAL_S = 10.0
DURATION_REAL_S = 40
RETRY_REAL_S = 1.0


class Heartbeat:
    """One node's Lease. ``run`` it as a task; ``late`` hears how overdue each renewal was."""

    def __init__(
        self,
        cluster: ports.Cluster,
        node: ports.Object,
        clock: ports.Clock,
        late: Callable[[float], None] = lambda real_s: None,
    ) -> None:
        self._cluster = cluster
        self._name = node["metadata"]["name"]
        self._uid = node["metadata"]["uid"]
        self._clock = clock
        self._late = late

    async def run(self) -> None:
        """Renew at once, then on this node's own beat, until cancelled."""
        await self._renew()
        offset = zlib.crc32(self._name.encode()) % 1000 / 1000 * PERIOD_REAL_S
        due = self._clock.real_s() - self._clock.real_s() % PERIOD_REAL_S + offset
        while True:
            while due <= self._clock.real_s():
                due += PERIOD_REAL_S
            await self._clock.sleep_real(due - self._clock.real_s())
            await self._renew()
            self._late(self._clock.real_s() - due)

    async def _renew(self) -> None:
        while True:
            now = timestamps.format_micro_time(self._clock.wall_s())
            try:
                await self._write(now)
                return
            except errors.ClusterError as error:
                log.warning("Lease of node %s: %s", self._name, error)
                await self._clock.sleep_real(RETRY_REAL_S)

    async def _write(self, now: str) -> None:
        spec = {
            "holderIdentity": self._name,
            "leaseDurationSeconds": DURATION_REAL_S,
            "renewTime": now,
        }
        try:
            await self._cluster.patch(ports.LEASES, NAMESPACE, self._name, {"spec": spec})
        except errors.NotFound:
            owner = {"apiVersion": "v1", "kind": "Node", "name": self._name, "uid": self._uid}
            meta = {"name": self._name, "namespace": NAMESPACE, "ownerReferences": [owner]}
            await self._cluster.create(ports.LEASES, NAMESPACE, {"metadata": meta, "spec": spec})
