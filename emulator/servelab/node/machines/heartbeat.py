"""Node Leases: renewed every 10 real seconds or a little more, spread over the nodes.

Where several processes play nodes, a Lease's annotation names the one that plays it, and every
write carries the version that the one before left: whoever finds another is not the player.
"""

import contextlib
import logging
import random
from collections.abc import Callable
from typing import Any, Protocol

from modelserve import errors, ports
from modelserve.adapters import backoff
from modelserve.api import names, timestamps
from servelab.node.machines import sharding

log = logging.getLogger(__name__)

NAMESPACE = "kube-node-lease"
PERIOD_REAL_S = 10.0
# A kubelet's timer adds up to so much of it, so that nodes do not fall into step.
JITTER = 0.04
DURATION_REAL_S = 40
RETRY_REAL_S = 1.0
# A node so young has no Lease yet: a kubelet creates it a period after it registered. Here they are
# spread over a period, after a second in which many nodes may register at once.
YOUNG_REAL_S = 10.0
FIRST_AFTER_REAL_S = 1.0
# client-go's longest pause between two tries of a Lease.
LONGEST_PAUSE_REAL_S = 7.0


class Us(Protocol):
    """This process among others; without a name there are none at work."""

    name: str

    @property
    def term(self) -> int: ...

    def holds(self) -> bool: ...

    def live(self) -> frozenset[str]: ...

    async def look(self) -> None:
        """Find out who is live. Raises ClusterError."""
        ...


class Heartbeat:
    """One node's Lease. ``run`` it as a task; ``late`` hears how overdue each renewal was.

    ``lost`` is called when another process plays the node. Without ``us`` there is no other.
    """

    def __init__(
        self,
        cluster: ports.Cluster,
        node: ports.Object,
        clock: ports.Clock,
        late: Callable[[float], None] = lambda real_s: None,
        held: Callable[[], bool] = lambda: False,
        us: Us | None = None,
        lost: Callable[[], None] = lambda: None,
        rng: random.Random | None = None,
    ) -> None:
        """While ``held``, nothing is renewed."""
        self.name = node["metadata"]["name"]
        self._cluster = cluster
        self._uid = node["metadata"]["uid"]
        self._clock = clock
        self._late = late
        self._held = held
        self._us = us if us is not None and us.name else None
        self._lost = lost
        created_s = timestamps.parse_if_any(node["metadata"].get("creationTimestamp"))
        self._young = created_s is not None and clock.wall_s() - created_s < YOUNG_REAL_S
        self._clean = False  # of the name of another
        self._version = ""
        self._term = 0  # in which it was last taken or renewed
        self._rng = rng or random.Random()
        self._backoff = backoff.Backoff(self._rng, RETRY_REAL_S, LONGEST_PAUSE_REAL_S)

    @property
    def ours(self) -> bool:
        """Whether the node is ours to write for, as far as we know."""
        if self._us is None:
            return True
        return self._us.holds() and self._term == self._us.term and bool(self._version)

    async def take(self) -> bool:
        """Say that we play the node, if no other does; if one does, False after a pause."""
        if self._us is None or await self._try(self._us):
            return True
        await self._clock.sleep_real(RETRY_REAL_S)
        return False

    async def release(self) -> None:
        """Let another take it, if it is ours still. Nothing may be written for the node after."""
        if not self.ours or not self._version:
            return
        version, self._version = self._version, ""
        try:
            await self._patch({"metadata": _held_by("", version)})
        except errors.ClusterError as error:
            log.debug("Lease of node %s: %s", self.name, error)

    async def run(self) -> None:
        """Renew at once, then on this node's own beat, until cancelled."""
        wait_real_s = self._rng.random() * PERIOD_REAL_S
        if self._young:
            await self._clock.sleep_real(FIRST_AFTER_REAL_S + wait_real_s)
            wait_real_s = PERIOD_REAL_S
        await self._renew()
        due = self._clock.real_s() + wait_real_s
        while True:
            await self._clock.sleep_real(max(0.0, due - self._clock.real_s()))
            await self._renew()
            self._late(self._clock.real_s() - due)
            due = max(due, self._clock.real_s() - PERIOD_REAL_S)
            due += PERIOD_REAL_S * (1 + JITTER * self._rng.random())

    async def _renew(self) -> None:
        level = logging.WARNING
        while not self._held():
            try:
                await self._write()
                self._backoff.reset()
                return
            except errors.ClusterError as error:
                # Of a server in trouble our own Lease tells, once and not for each node.
                troubled = isinstance(error, errors.Unavailable)
                log.log(
                    logging.DEBUG if troubled else level, "Lease of node %s: %s", self.name, error
                )
                level = level if troubled else logging.DEBUG
                wish_real_s = getattr(error, "retry_after_s", None) or 0.0
                await self._clock.sleep_real(max(self._backoff.next_real_s(), wish_real_s))

    async def _write(self) -> None:
        if self._us is None:
            await self._renew_alone()
            return
        if not self._version:
            return
        try:
            body = {"metadata": {"resourceVersion": self._version}, "spec": self._spec()}
            self._note(await self._patch(body))
        except errors.NotFound:
            self._note(await self._create(self._us.name))
        except errors.Conflict:
            await self._settle(self._us)

    async def _renew_alone(self) -> None:
        """Of the only process: whether there is a Lease is all there is to find out."""
        if self._young:
            self._young = False
            with contextlib.suppress(errors.Conflict):
                await self._create("")
                return
        try:
            # Who shared the nodes before may have left its name.
            noted = {"metadata": {"annotations": {names.LEASE_HOLDER: None}}}
            await self._patch({"spec": self._spec(), **({} if self._clean else noted)})
            self._clean = True
        except errors.NotFound:
            await self._create("")

    async def _settle(self, us: Us) -> None:
        """Somebody wrote the Lease: another process that took the node, or anybody else."""
        lease = await self._get()
        if _holder(lease) != us.name:
            self._version = ""
            self._lost()
            return
        self._version = lease["metadata"]["resourceVersion"]
        raise errors.Conflict(f"Lease of node {self.name} was written by somebody else")

    async def _try(self, us: Us) -> bool:
        """Take the Lease if that may be; False if another has it or was quicker."""
        try:
            lease = await self._get()
            holder = _holder(lease)
            if holder not in {"", us.name, *us.live()}:
                # It said that it is there before it took the node: perhaps since we looked last.
                await us.look()
            if not us.holds() or not sharding.may_take(holder, us.name, us.live()):
                return False
            meta = _held_by(us.name, lease["metadata"]["resourceVersion"])
            self._note(await self._patch({"metadata": meta, "spec": self._spec()}))
        except errors.NotFound:
            return await self._try_new(us)
        except errors.ClusterError as error:
            log.debug("Lease of node %s: %s", self.name, error)
            return False
        return True

    async def _try_new(self, us: Us) -> bool:
        try:
            self._note(await self._create(us.name))
        except errors.ClusterError as error:
            log.debug("Lease of node %s: %s", self.name, error)
            return False
        return True

    def _note(self, lease: ports.Object) -> None:
        self._version = lease["metadata"]["resourceVersion"]
        self._term = 0 if self._us is None else self._us.term

    def _spec(self) -> dict[str, Any]:
        return {
            "holderIdentity": self.name,
            "leaseDurationSeconds": DURATION_REAL_S,
            "renewTime": timestamps.format_micro_time(self._clock.wall_s()),
        }

    async def _get(self) -> ports.Object:
        return await self._cluster.get(ports.LEASES, NAMESPACE, self.name)

    async def _patch(self, body: ports.Object) -> ports.Object:
        return await self._cluster.patch(ports.LEASES, NAMESPACE, self.name, body)

    async def _create(self, holder: str) -> ports.Object:
        owner = {"apiVersion": "v1", "kind": "Node", "name": self.name, "uid": self._uid}
        meta: dict[str, Any] = {"name": self.name, "namespace": NAMESPACE}
        meta["ownerReferences"] = [owner]
        if holder:
            meta["annotations"] = {names.LEASE_HOLDER: holder}
        body = {"metadata": meta, "spec": self._spec()}
        return await self._cluster.create(ports.LEASES, NAMESPACE, body)


def _held_by(holder: str, version: str) -> dict[str, Any]:
    return {"annotations": {names.LEASE_HOLDER: holder}, "resourceVersion": version}


def _holder(lease: ports.Object) -> str:
    annotations = lease["metadata"].get("annotations") or {}
    return str(annotations.get(names.LEASE_HOLDER, ""))
