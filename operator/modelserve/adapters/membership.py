"""A gateway's Lease: that it lives, and where its internal port is. Durations are real seconds."""

import asyncio
import contextlib
import logging

from modelserve import errors, ports
from modelserve.api import names, timestamps, wire

log = logging.getLogger(__name__)

WITHDRAW_REAL_S = 2.0


class Membership:
    """``run`` it as a task."""

    def __init__(
        self,
        cluster: ports.Cluster,
        namespace: str,
        name: str,
        address: str,
        epoch: str,
        clock: ports.Clock,
    ) -> None:
        """``address``: host:port of the internal port; ``epoch`` changes with each start."""
        self.registered = asyncio.Event()
        self._cluster = cluster
        self._namespace = namespace
        self._name = name
        self._address = address
        self._epoch = epoch
        self._clock = clock
        self._uid = ""

    async def run(self) -> None:
        """Renew every 3 s until cancelled, then delete the Lease. Errors are retried for ever."""
        failing = False
        try:
            while True:
                try:
                    await self.renew()
                    failing = False
                except errors.ClusterError as error:
                    log.log(
                        logging.DEBUG if failing else logging.WARNING,
                        "cannot renew Lease %s: %s",
                        self._name,
                        error,
                    )
                    failing = True
                await self._clock.sleep_real(wire.LEASE_RENEW_REAL_S)
        finally:
            await self._withdraw()

    async def renew(self) -> None:
        """Write the Lease, with now as its renew time."""
        lease = await self._cluster.apply(
            ports.LEASES,
            self._namespace,
            self._name,
            {
                "metadata": {
                    "labels": {
                        names.LABEL_GATEWAY: "true",
                        names.LABEL_COMPONENT: "gateway",
                    },
                    "annotations": {
                        names.GATEWAY_ADDRESS: self._address,
                        names.GATEWAY_EPOCH: self._epoch,
                    },
                },
                "spec": {
                    "holderIdentity": self._name,
                    "leaseDurationSeconds": round(wire.LEASE_LAPSE_REAL_S),
                    "renewTime": timestamps.format_micro_time(self._clock.wall_s()),
                },
            },
            manager=names.GATEWAY,
            force=True,
        )
        self._uid = lease["metadata"]["uid"]
        self.registered.set()

    async def _withdraw(self) -> None:
        if not self._uid:
            return
        with contextlib.suppress(errors.ClusterError, TimeoutError):
            async with asyncio.timeout(WITHDRAW_REAL_S):
                await self._cluster.delete(ports.LEASES, self._namespace, self._name, uid=self._uid)
