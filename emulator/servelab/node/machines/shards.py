"""This process among the emulator's others: its own Lease, and a look at theirs."""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from modelserve import errors, ports
from modelserve.adapters import cache
from modelserve.api import names, timestamps
from servelab.node.machines import sharding

log = logging.getLogger(__name__)

NAMESPACE = "kube-node-lease"
PREFIX = "servelab-emulator-"
MANAGER = "servelab-emulator"
LOOK_REAL_S = 0.5
WITHDRAW_REAL_S = 2.0


class Alone:
    """The only process: everything is its own."""

    identity = ""
    term = 0

    def keeps(self, key: str) -> bool:
        return True

    def holds(self) -> bool:
        return True

    def live(self) -> frozenset[str]:
        return frozenset()


class Shard:
    """One of several. ``run`` it as a task; nothing is ours before ``joined``.

    ``changed`` is called when the members are others, or we may write no more, or again.
    """

    def __init__(self, cluster: ports.Cluster, clock: ports.Clock, identity: str) -> None:
        """``identity``: of this process alone; one that it had before a restart is best."""
        self.identity = identity
        self.joined = asyncio.Event()
        self.changed: Callable[[], None] = lambda: None
        self._cluster = cluster
        self._clock = clock
        self._roster = sharding.Roster()
        self._mandate = sharding.Mandate()
        self._leases = cache.Store(
            cluster, ports.LEASES, NAMESPACE, label_selector=f"{names.LABEL_EMULATOR}=true"
        )
        self._leases.on_change(self._told)

    def keeps(self, key: str) -> bool:
        """Whether what has that key falls to us."""
        return self.holds() and sharding.owner(key, self.live()) == self.identity

    def holds(self) -> bool:
        """Whether we may write at all: a renewal of ours got through lately."""
        return self.joined.is_set() and self._mandate.holds(self._clock.real_s())

    @property
    def term(self) -> int:
        """Another after each time that we might have been thought dead."""
        return self._mandate.term

    def live(self) -> frozenset[str]:
        """Who may be at work, with us."""
        return self._roster.live(self._clock.real_s()) | {self.identity}

    async def run(self) -> None:
        """Renew our Lease and watch the others', until cancelled; then withdraw."""
        following = asyncio.create_task(self._leases.run())
        looking = asyncio.create_task(self._look())
        try:
            await self._leases.synced.wait()
            while True:
                await self._renew()
                await self._clock.sleep_real(sharding.RENEW_REAL_S)
        finally:
            for task in (following, looking):
                task.cancel()
            await asyncio.gather(following, looking, return_exceptions=True)
            await self._withdraw()

    async def _renew(self) -> None:
        asked_real_s = self._clock.real_s()
        try:
            async with asyncio.timeout(sharding.GIVE_UP_REAL_S):
                await self._write(self.identity)
        except (errors.ClusterError, TimeoutError) as error:
            log.warning("cannot renew the Lease of emulator %s: %r", self.identity, error)
            return
        self._mandate.renewed(asked_real_s, self._clock.real_s())
        self.joined.set()

    async def _look(self) -> None:
        """Members lapse, and so does what we may do, without a word from anybody."""
        before: tuple[bool, frozenset[str]] = (False, frozenset())
        while True:
            now = self.holds(), self.live()
            if now != before:
                if self.joined.is_set():
                    log.info("emulators at work: %s", ", ".join(sorted(now[1])))
                before = now
                self.changed()
            await self._clock.sleep_real(LOOK_REAL_S)

    async def _write(self, holder: str) -> None:
        await self._cluster.apply(
            ports.LEASES,
            NAMESPACE,
            PREFIX + self.identity,
            {
                "metadata": {"labels": {names.LABEL_EMULATOR: "true"}},
                "spec": {
                    "holderIdentity": holder,
                    "leaseDurationSeconds": round(sharding.LAPSE_REAL_S),
                    "renewTime": timestamps.format_micro_time(self._clock.wall_s()),
                },
            },
            manager=MANAGER,
            force=True,
        )

    async def _withdraw(self) -> None:
        """Others need not wait our Lease out: first it says so, then it goes."""
        with contextlib.suppress(errors.ClusterError, TimeoutError):
            async with asyncio.timeout(WITHDRAW_REAL_S):
                await self._write("")
                await self._cluster.delete(ports.LEASES, NAMESPACE, PREFIX + self.identity)

    def _told(self, old: ports.Object | None, new: ports.Object | None) -> None:
        # A Lease that somebody deleted says nothing of its process: that one lapses.
        if new is None:
            return
        name = new["metadata"]["name"].removeprefix(PREFIX)
        if new["spec"].get("holderIdentity"):
            self._roster.see(name, new["spec"].get("renewTime", ""), self._clock.real_s())
        else:
            self._roster.forget(name)
