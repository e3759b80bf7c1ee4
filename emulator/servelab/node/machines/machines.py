"""The nodes that this process plays: takes them on, tells them news, sees them off."""

import asyncio
import contextlib
import functools
import logging
from collections.abc import Iterator, Mapping

from modelserve import errors, ports
from modelserve.adapters import events
from modelserve.api import names
from servelab.node import news, services
from servelab.node.faults import ailments, troubles
from servelab.node.machines import announcing, heartbeat, links, machine, outages
from servelab.node.pods import planning, tenants
from servelab.node.pools import keeping
from servelab.timing import routes

log = logging.getLogger(__name__)

# A kubelet's events have their own filter (see ``spam``).
UNLIMITED = 1_000_000


class Machines(Mapping[str, machine.Machine]):
    """By name."""

    def __init__(
        self,
        shared: services.Services,
        host: str,
        keeper: keeping.PoolKeeper,
        pods: tenants.Tenants,
        told: news.News,
    ) -> None:
        """``host`` is where the kubelet API of all of them is."""
        self._services = shared
        self._host = host
        self._keeper = keeper
        self._tenants = pods
        self._news = told
        self._links = links.Links(pods.end_moved)
        self._by_name: dict[str, machine.Machine] = {}
        cut_off = lambda name: self.ailment(name).cut_off  # noqa: E731
        self._announcer = announcing.Announcer(shared.cluster, shared.clock, self, cut_off)
        self._outages: dict[str, outages.Outages] = {}
        self._work: dict[str, list[asyncio.Task[None]]] = {}

    def __getitem__(self, name: str) -> machine.Machine:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    async def announce(self) -> None:
        """Tell what their kubelets tell of them. For ever."""
        await self._announcer.run()

    def ailment(self, name: str) -> ailments.Ailment:
        """What the node of that name suffers as a whole."""
        known = self._by_name.get(name)
        return ailments.WELL if known is None else known.trouble.ailment(self._services.unix_s())

    def take_on(self, node: ports.Object, beat: heartbeat.Heartbeat) -> bool:
        """Play it from now on; False for one that cannot be emulated, which the log tells."""
        try:
            facts = machine.read_facts(node)
        except (errors.InputError, KeyError) as error:
            log.error("node %s cannot be emulated: %s", node["metadata"]["name"], error)
            return False
        name = node["metadata"]["name"]
        found = self._by_name[name] = self._made(node, facts, beat)
        found.remember(lambda: [each.pod.raw for each in self._tenants.on(name)])
        self.heed(found)
        unix_s, reclaim = self._services.unix_s, self._keeper.reclaim
        outage = outages.Outages(found, unix_s, self._suffering, reclaim)
        self._outages[name] = outage
        work = (beat.run(), found.sink.run(), outage.run())
        self._work[name] = [self._services.tasks.spawn(each) for each in work]
        self._announcer.came(name)
        return True

    def update(self, known: machine.Machine, node: ports.Object) -> None:
        """The Node object of one of them is another."""
        with contextlib.suppress(errors.InputError):
            known.update(node)
        self.heed(known)

    def heed(self, known: machine.Machine) -> None:
        """What goes wrong on a node may have changed: its pool says so, or it itself."""
        pool, spec = known.facts.pool, self._keeper.spec(known.facts.pool)
        known.brief = spec is not None and spec.kubelet.profile == "Fast"
        faults = spec.faults if spec else ()
        listed = troubles.said(self._keeper.pool(pool), faults, known.object)
        if known.trouble.hear(listed, spec.gpus_per_node if spec else 0):
            if known.name in self._outages:
                self._outages[known.name].heard()
            for found in self._tenants.running(known.name):
                found.befall()

    async def leave(self, name: str) -> None:
        """Another process plays the node from now on, with its pods as they stand."""
        known = self._by_name.pop(name, None)
        if known is None:
            return
        work = self._unhand(name)
        await asyncio.gather(*work, self._tenants.leave_all(name), return_exceptions=True)
        known.links.close(self._services.now_s())

    def drop(self, known: machine.Machine) -> None:
        """The node is gone: the machine is off, and so is everything on it."""
        self._by_name.pop(known.name, None)
        self._unhand(known.name)
        self._services.tasks.spawn(self._close(known, self._tenants.end_all(known.name)))

    def _made(
        self, node: ports.Object, facts: planning.NodeFacts, beat: heartbeat.Heartbeat
    ) -> machine.Machine:
        name = node["metadata"]["name"]
        spec = self._keeper.spec(node["metadata"]["labels"].get(names.LABEL_POOL, ""))
        moves = self._links.of(name)
        host = machine.make_host(
            node,
            self._host,
            self._services.clock.scale,
            moves,
            serialize=spec is None or spec.kubelet.serialize_image_pulls,
            policy=machine.gc_policy(spec),
        )
        sink = events.EventSink(
            self._services.cluster,
            "kubelet",
            self._services.clock,
            host=name,
            per_minute=UNLIMITED,
            limit=self._services.events,
        )
        tell_images = functools.partial(self._news.tell_images, name)
        return machine.Machine(node, facts, host, moves, sink, beat, tell_images)

    def _suffering(self, known: machine.Machine) -> None:
        """What the node as a whole suffers is another now."""
        self._news.tell()
        for found in self._tenants.running(known.name):
            found.back()

    def _unhand(self, name: str) -> list[asyncio.Task[None]]:
        """End what is done for a node alone."""
        self._outages.pop(name, None)
        work = self._work.pop(name, [])
        for task in work:
            task.cancel()
        return work

    async def _close(self, known: machine.Machine, ends: list[asyncio.Task[None]]) -> None:
        """Once nothing of it lives, its links go; the pool's with its last node."""
        await asyncio.gather(*ends, return_exceptions=True)
        known.links.close(self._services.now_s())
        pool = known.facts.pool
        if all(other.facts.pool != pool for other in self._by_name.values()):
            self._links.drop(routes.backend(pool))
            self._links.drop(routes.registry(pool))
