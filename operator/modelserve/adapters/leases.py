"""Leases that one process of several holds. All durations are real seconds."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any, Self

from modelserve import errors, ports
from modelserve.adapters import lapsing
from modelserve.api import timestamps

log = logging.getLogger(__name__)

_RELEASE_REAL_S = 2.0


class LeaderElection:
    """``async with`` waits until this identity leads; the block is led until ``lost`` is set.

    Whether another's Lease has run out is judged by how long *we* have seen no change of it, on
    our own monotonic clock (see ``lapsing``). Without a renewal for ``renew_real_s`` (an outage, a
    machine that was paused) ``certain`` is cleared: another may lead. It is set again once the
    Lease is found unchanged; who finds that another had it meanwhile, or that it was removed, has
    lost. Like client-go's, it is no fence: a process that was stopped may believe in its lead
    until it has noticed.
    """

    def __init__(
        self,
        cluster: ports.Cluster,
        namespace: str,
        name: str,
        identity: str,
        clock: ports.Clock,
        *,
        duration_real_s: float = 15.0,
        renew_real_s: float = 10.0,
        retry_real_s: float = 2.0,
        labels: Mapping[str, str] | None = None,
        has_ended: Callable[[str], bool] = lambda identity: False,
        advice: str = "",
    ) -> None:
        """``renew_real_s``: without a renewal for that long the lead is in doubt.

        ``labels`` are the Lease's. A holder that ``has_ended``, as far as this machine knows, is
        not waited out; ``advice`` is for people who read that another is waited for.
        """
        self.lost = asyncio.Event()
        self.certain = asyncio.Event()
        self.lost_to = ""  # once lost, to whom, in words
        self._cluster = cluster
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._clock = clock
        self._duration_real_s = duration_real_s
        self._renew_real_s = renew_real_s
        self._retry_real_s = retry_real_s
        self._labels = dict(labels or {})
        self._has_ended = has_ended
        self._advice = advice
        self._mandate = lapsing.Mandate(renew_real_s)
        self._lease: ports.Object | None = None
        self._still = lapsing.Stillness(
            max(duration_real_s / 3, 2.5 * retry_real_s), duration_real_s - 2 * retry_real_s
        )
        self._sent: dict[str, Any] | None = None
        self._renewing: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.acquire()
        self.certain.set()
        self._renewing = asyncio.create_task(self._renew_until_lost(), name="lease-renewal")
        self._renewing.add_done_callback(self._ended)
        return self

    async def __aexit__(self, *exception: object) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
        self.certain.clear()
        await self.release()

    @property
    def leads(self) -> bool:
        """Whether the lead is certain at this moment, by the clock itself."""
        return self.certain.is_set() and self._mandate.holds(self._clock.real_s())

    @property
    def term(self) -> int:
        """Another after each time that we might have been thought to be gone."""
        return self._mandate.term

    @property
    def holder(self) -> str:
        """Who has the Lease, as far as we know."""
        return _holder(self._lease) if self._lease else ""

    async def until_certain(self) -> None:
        """Wait while another may lead; a pause that no renewal has noticed yet counts."""
        if not self.leads:
            self._doubt()
        await self.certain.wait()

    async def acquire(self) -> None:
        """Wait until we lead; errors are retried for ever."""
        said = ""
        while True:
            asked_real_s = self._clock.real_s()
            try:
                if await self._try():
                    log.info("leading as %s", self._identity)
                    self._mandate.renewed(asked_real_s, self._clock.real_s())
                    return
                state = f"waiting for Lease {self._name}, held by {self.holder}{self._advice}"
            except errors.ClusterError as error:
                state = f"cannot take Lease {self._name}: {error}"
            if state != said:
                log.info("%s", state)
                said = state
            await self._clock.sleep_real(self._retry_real_s)

    async def release(self) -> None:
        """Give the Lease back, if it is ours, so that the next one need not wait it out."""
        lease, self._lease = self._lease, None
        if lease is None or self.lost.is_set() or _holder(lease) != self._identity:
            return
        with contextlib.suppress(errors.ClusterError, TimeoutError):
            async with asyncio.timeout(_RELEASE_REAL_S):
                await self._write({**lease["spec"], "holderIdentity": ""}, lease)

    async def _renew_until_lost(self) -> None:
        while True:
            left_real_s = self._mandate.left_real_s(self._clock.real_s())
            await self._clock.sleep_real(min(self._retry_real_s, left_real_s or self._retry_real_s))
            asked_real_s = self._clock.real_s()
            left_real_s = self._mandate.left_real_s(asked_real_s)
            if not left_real_s:
                self._doubt()
            try:
                async with asyncio.timeout(left_real_s or self._renew_real_s):
                    if await self._renew():
                        # Counted from when it was asked: the server's clock began no earlier.
                        self._mandate.renewed(asked_real_s, self._clock.real_s())
                    elif self.lost.is_set():
                        return
            except (errors.ClusterError, TimeoutError) as error:
                level = logging.WARNING if self.certain.is_set() else logging.DEBUG
                log.log(level, "cannot renew Lease %s: %r", self._name, error)

    async def _renew(self) -> bool:
        """Renew the Lease if it is still ours; sets ``lost`` if another has or may have had it."""
        before = self._changes()
        lease = await self._read()
        if lease is None and not self.certain.is_set():
            # Another may have had it until then, and nothing tells of that any more.
            self._lease = None
            return self._lose("whoever had the Lease before it was removed")
        if lease is None:
            renewed = await self._create()
        elif lease.get("spec") == self._sent:
            # As we wrote it: nobody came in between, whether or not we were answered.
            if self._changes() != before:
                log.warning("Lease %s is ours: we were not told that we took it", self._name)
            renewed = await self._take(lease)
        elif _holder(lease) not in ("", self._identity) or self._changes() != before:
            return self._lose(self._winner(lease))
        else:
            renewed = await self._take(lease)
        if renewed and not self.certain.is_set():
            log.warning("Lease %s is ours still: leading on", self._name)
            self.certain.set()
        return renewed

    def _lose(self, whom: str) -> bool:
        log.error("lost the lead to %s", whom)
        self.lost_to = whom
        self._leave()
        return False

    def _winner(self, lease: ports.Object) -> str:
        holder = _holder(lease)
        if holder == self._identity:
            return f"another that calls itself {holder} as we do"
        return holder or "another, which has ended meanwhile"

    def _leave(self) -> None:
        self.certain.clear()
        self.lost.set()

    def _ended(self, renewing: asyncio.Task[None]) -> None:
        """Without renewals there is no lead."""
        if not renewing.cancelled() and (failure := renewing.exception()) is not None:
            log.error("renewals of Lease %s ended", self._name, exc_info=failure)
            self._leave()

    def _doubt(self) -> None:
        if self.certain.is_set():
            log.error(
                "no renewal of Lease %s for %.0f s: another may lead, so nothing is done until it "
                "is seen again",
                self._name,
                self._renew_real_s,
            )
        self.certain.clear()

    async def _try(self) -> bool:
        """Take the Lease if we may; False if another has it or was quicker."""
        lease = await self._read()
        # One that somebody deleted says nothing of who had it.
        known = lease or self._lease
        if known is not None and not self._is_free(known):
            return False
        return await (self._create() if lease is None else self._take(lease))

    async def _read(self) -> ports.Object | None:
        asked_real_s = self._clock.real_s()
        try:
            lease = await self._cluster.get(ports.LEASES, self._namespace, self._name)
        except errors.NotFound:
            now_real_s = self._clock.real_s()
            self._still.look(now_real_s, now_real_s - asked_real_s)
            return None
        self._observe(lease, asked_real_s)
        return lease

    async def _take(self, lease: ports.Object) -> bool:
        old = dict(lease.get("spec") or {})
        self._sent = self._spec(old, taken=_holder(lease) != self._identity)
        try:
            self._observe(await self._write(self._sent, lease), self._clock.real_s())
        except errors.Conflict:
            return False
        return True

    async def _create(self) -> bool:
        metadata = {"name": self._name, "labels": self._labels}
        self._sent = self._spec({}, taken=True)
        body = {"metadata": metadata, "spec": self._sent}
        try:
            made = await self._cluster.create(ports.LEASES, self._namespace, body)
            self._observe(made, self._clock.real_s())
        except errors.Conflict:
            return False
        return True

    async def _write(self, spec: dict[str, Any], lease: ports.Object) -> ports.Object:
        # The resource version comes along: whoever wrote in between makes this a Conflict.
        body = {**lease, "spec": spec}
        return await self._cluster.replace(ports.LEASES, self._namespace, self._name, body)

    def _spec(self, old: dict[str, Any], *, taken: bool) -> dict[str, Any]:
        now = timestamps.format_micro_time(self._clock.wall_s())
        changes = int(old.get("leaseTransitions") or 0)
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, round(self._duration_real_s)),
            "acquireTime": now if taken else old.get("acquireTime", now),
            "renewTime": now,
            "leaseTransitions": changes + 1 if taken and old else changes,
        }

    def _observe(self, lease: ports.Object, asked_real_s: float) -> None:
        now_real_s = self._clock.real_s()
        self._still.see(lease.get("spec"), now_real_s, now_real_s - asked_real_s)
        self._lease = lease

    def _is_free(self, lease: ports.Object) -> bool:
        holder = _holder(lease)
        if holder in ("", self._identity) or self._has_ended(holder):
            return True
        duration = float(lease["spec"].get("leaseDurationSeconds") or self._duration_real_s)
        return self._still.counted_real_s >= duration

    def _changes(self) -> int:
        """How often the Lease has changed hands, as far as we know."""
        spec = (self._lease or {}).get("spec") or {}
        return int(spec.get("leaseTransitions") or 0)


def _holder(lease: ports.Object) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")
