"""Operators that lead by a Lease in another namespace: all act on all namespaces, so one has to.

The Lease excludes only those that were started with the same ``--namespace``. Of the others, the
one that has led for longest goes on; each later one decides nothing as long as that one renews.
"""

import asyncio
import logging

from modelserve import errors, ports

log = logging.getLogger(__name__)

LOOK_REAL_S = 5.0


class Rivals:
    """``run`` it as a task. ``none_before_us`` is set while no other operator goes first."""

    def __init__(
        self,
        cluster: ports.Cluster,
        namespace: str,
        name: str,
        clock: ports.Clock,
        *,
        duration_real_s: float = 15.0,
    ) -> None:
        """``duration_real_s``: a Lease that we have not seen change for that long has run out."""
        self.none_before_us = asyncio.Event()
        self._cluster = cluster
        self._namespace = namespace
        self._name = name
        self._clock = clock
        self._duration_real_s = duration_real_s
        self._renewed: dict[str, tuple[str, float]] = {}  # by namespace: stamp, and when it was new
        self._said = ""

    async def run(self) -> None:
        """Look every 5 s, until cancelled."""
        while True:
            try:
                await self.look()
            except errors.Forbidden:
                # With rights in its own namespace only it cannot know.
                self.none_before_us.set()
            except errors.ClusterError as error:
                log.debug("cannot look for other operators: %s", error)
            await self._clock.sleep_real(LOOK_REAL_S)

    async def look(self) -> None:
        """Find out who leads by other Leases. Raises ClusterError."""
        found, _ = await self._cluster.list(
            ports.LEASES, field_selector=f"metadata.name={self._name}"
        )
        leases = {lease["metadata"]["namespace"]: lease.get("spec") or {} for lease in found}
        own = leases.pop(self._namespace, {})
        live = {where: spec for where, spec in leases.items() if self._is_live(where, spec)}
        seniority = str(own.get("acquireTime") or "~"), self._namespace
        before = sorted(w for w in live if (str(live[w].get("acquireTime") or "~"), w) < seniority)
        self._tell(live, before)
        if before:
            self.none_before_us.clear()
        else:
            self.none_before_us.set()

    def _is_live(self, where: str, spec: ports.Object) -> bool:
        now_real_s, stamp = self._clock.real_s(), str(spec.get("renewTime"))
        known, since_real_s = self._renewed.get(where, ("", now_real_s))
        if stamp != known:
            since_real_s = now_real_s
        self._renewed[where] = stamp, since_real_s
        lapsed = now_real_s - since_real_s >= self._duration_real_s
        return bool(spec.get("holderIdentity")) and not lapsed

    def _tell(self, live: dict[str, ports.Object], before: list[str]) -> None:
        others = [f"{live[w]['holderIdentity']} in namespace {w}" for w in before or sorted(live)]
        said = ""
        if others:
            who = "this one decides nothing until it has gone" if before else "it is to wait for us"
            said = (
                f"another operator has a Lease of its own, {' and '.join(others)}, and both act on "
                f"all namespaces: {who}; stop one, or start both with the same --namespace"
            )
        if said and said != self._said:
            log.warning("%s", said)
        self._said = said
