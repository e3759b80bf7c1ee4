"""This process among the emulators of its cluster: its own Lease, and a look at theirs."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Self

from modelserve import errors, ports
from modelserve.adapters import instances, leases
from modelserve.api import names
from servelab.node.machines import sharding

log = logging.getLogger(__name__)

NAMESPACE = "kube-node-lease"
LEASE = "servelab-emulator"
LABELS, SELECTOR = {names.LABEL_EMULATOR: "true"}, f"{names.LABEL_EMULATOR}=true"
LOOK_REAL_S = 2.0
# Who may not write goes on as soon as it may.
SOON_REAL_S = 0.5
_OUT = "this emulator ends; started again, it waits"
ADVICE = "; stop one, or give each a --shard name of its own, and they share the nodes"


class Membership:
    """One that shares the nodes under its name, or without a name the only one.

    ``async with`` waits until we may play nodes: as long as another has our Lease, or one is at
    work that we share no nodes with. Then ``run`` it as a task. ``changed`` is called when the
    members are others, or we may write no more, or again.
    """

    def __init__(
        self,
        cluster: ports.Cluster,
        clock: ports.Clock,
        name: str = "",
        instance: str | None = None,
    ) -> None:
        """``name``: best one that we had before a restart. ``instance``: of this process alone."""
        self.name = name
        self.changed: Callable[[], None] = lambda: None
        self._cluster = cluster
        self._clock = clock
        self._lease = f"{LEASE}-{name}" if name else LEASE
        self._election = leases.LeaderElection(
            cluster,
            NAMESPACE,
            self._lease,
            instance or instances.this_process(),
            clock,
            duration_real_s=sharding.LAPSE_REAL_S,
            renew_real_s=sharding.GIVE_UP_REAL_S,
            retry_real_s=sharding.RENEW_REAL_S,
            labels=LABELS,
            has_ended=instances.has_ended,
            advice=ADVICE,
        )
        self._claimed = False
        self._cleared = 0  # the term in which nobody was in our way
        self._roster = sharding.Roster()
        self._said = ""

    def keeps(self, key: str) -> bool:
        """Whether what has that key falls to us."""
        return self.holds() and (not self.name or sharding.owner(key, self.live()) == self.name)

    def holds(self) -> bool:
        """Whether we may write at all: a renewal of ours got through lately."""
        return self._election.leads and self._cleared == self.term

    def doubt(self) -> str:
        """Why we may write nothing now, though we play nodes; empty if we may."""
        if self.holds():
            return ""
        if self._election.leads:
            return f"Lease {self._lease} is ours again, who else is at work is not known yet"
        return (
            f"Lease {self._lease} was not renewed for {sharding.GIVE_UP_REAL_S:.0f} s: another may "
            "play the nodes, so nothing is written until it is"
        )

    @property
    def term(self) -> int:
        """Another after each time that we might have been thought dead."""
        return self._election.term

    def live(self) -> frozenset[str]:
        """Who may be at work, with us."""
        return self._roster.live() | {self.name}

    def waits_for(self) -> str:
        """Who keeps us from playing nodes, as far as we know; empty if nobody does."""
        holder = "" if self._election.leads else self._election.holder
        return self._said or (f"Lease {self._lease} is held by {holder}" if holder else "")

    async def __aenter__(self) -> Self:
        try:
            while not await self._entered():
                await self._clock.sleep_real(sharding.RENEW_REAL_S)
            await self._sweep()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *exception: object) -> None:
        """The Lease says that we are gone: others need not wait it out."""
        if self._claimed:
            self._claimed = False
            await self._election.__aexit__(*exception)

    async def run(self) -> None:
        """Look who is there, and what we may do. For ever; SetUpError once we are out."""
        before: tuple[bool, frozenset[str]] = (False, frozenset())
        while True:
            await self._check()
            now = self.holds(), self.live()
            if now != before:
                if self.name:
                    log.info("emulators at work: %s", ", ".join(sorted(now[1])))
                before = now
                self.changed()
            await self._clock.sleep_real(LOOK_REAL_S if now[0] else SOON_REAL_S)

    async def _entered(self) -> bool:
        """Whether we may play nodes by now."""
        self._check_lease()
        try:
            if not self._claimed and await self._waits():
                return False
            if not self._claimed:
                self._claimed = True
                await self._election.__aenter__()
            # Each says that it is there before it looks who else is: of two that cannot both be,
            # at least one sees the other. The one that does not share gives way.
            if not await self._waits():
                return True
        except errors.ClusterError as error:
            log.warning("cannot look for other emulators: %s", error)
        if not self.name:
            await self.__aexit__()
        return False

    async def _sweep(self) -> None:
        """Who comes removes the Leases of those that went: names are as many as pods were."""
        with contextlib.suppress(errors.ClusterError):
            for lease in await self._found():
                if not lease["spec"].get("holderIdentity"):
                    await self._remove(lease["metadata"])

    async def _remove(self, meta: ports.Object) -> None:
        """One as it was seen: somebody of that name may have come again."""
        with contextlib.suppress(errors.ClusterError):
            await self._cluster.delete(
                ports.LEASES,
                NAMESPACE,
                meta["name"],
                uid=meta["uid"],
                resource_version=meta["resourceVersion"],
            )

    async def _check(self) -> None:
        """Others may have come; and some, who thought us dead, may play our nodes."""
        self._check_lease()
        cleared = self.holds()
        if not self._election.leads or (cleared and not self.name):
            return
        with contextlib.suppress(errors.ClusterError, TimeoutError):
            async with asyncio.timeout(sharding.GIVE_UP_REAL_S):
                others = await self._in_the_way()
            if others and not cleared:
                raise errors.SetUpError(f"{self._told_of(others)}: {_OUT}{ADVICE}")

    def _check_lease(self) -> None:
        if self._election.lost.is_set():
            whom = self._election.lost_to or "another"
            raise errors.SetUpError(f"Lease {self._lease} was taken by {whom}: {_OUT}{ADVICE}")

    async def _waits(self) -> bool:
        """Whether somebody is in our way; the log tells it once."""
        said = self._told_of(await self._in_the_way())
        if said and said != self._said:
            log.warning("%s: this one plays no nodes until then%s", said, ADVICE)
        self._said = said
        return bool(said)

    def _told_of(self, others: frozenset[str]) -> str:
        if not others:
            return ""
        if self.name:
            return "an emulator without --shard plays all nodes until it ends"
        return f"emulators with --shard {', '.join(sorted(others))} play the nodes until they end"

    async def look(self) -> None:
        """Find out who is there. Raises ClusterError."""
        asked_real_s = self._clock.real_s()
        found = await self._found()
        now_real_s = self._clock.real_s()
        self._roster.see(dict(map(_renewal, found)), now_real_s, now_real_s - asked_real_s)

    async def _in_the_way(self) -> frozenset[str]:
        """Who is at work that we share no nodes with; if nobody is, we may this term."""
        term = self.term
        await self.look()
        live = self._roster.live()
        others = live & {""} if self.name else live - {""}
        if not others:
            self._cleared = term
        return others

    async def _found(self) -> Sequence[ports.Object]:
        found, _ = await self._cluster.list(ports.LEASES, NAMESPACE, label_selector=SELECTOR)
        return found


def _renewal(lease: ports.Object) -> tuple[str, str]:
    """Whose it is, and its last renewal; empty where it says, or we know, that nobody has it."""
    name, spec = lease["metadata"]["name"].removeprefix(LEASE).removeprefix("-"), lease["spec"]
    holder = spec.get("holderIdentity") or ""
    gone = not holder or instances.has_ended(holder)
    return name, "" if gone else str(spec.get("renewTime") or "never")
