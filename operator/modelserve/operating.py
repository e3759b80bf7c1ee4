"""The operator as a process: takes the lead, watches, reconciles, until it is told to stop."""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any

import kopf
import prometheus_client as prometheus
from aiohttp import web

from modelserve import errors, handlers, ports, sensing, workqueue
from modelserve.adapters import (
    backoff,
    credentials,
    demand,
    events,
    instances,
    leases,
    patience,
    rivals,
    scrape,
    timescale,
)
from modelserve.api import names
from modelserve.api.keys import Key
from modelserve.reconciling import reconciler, world
from modelserve.render import labels
from modelserve.settings import Settings
from modelserve.telemetry import Telemetry

STOP_REAL_S = 10.0
# Between an end of the watches and a new beginning, which waits for what they need.
AGAIN_FIRST_REAL_S = 0.5
AGAIN_MOST_REAL_S = 30.0

_log = logging.getLogger(__name__)


class Unwatched(errors.ModelServeError):
    """The API server does not serve what we watch any more: the CRD was deleted, or our rights."""


async def run(
    cluster: ports.Cluster,
    clock: ports.Clock,
    settings: Settings,
    started: Callable[[Mapping[str, Any]], None],
    again: Callable[[], None] = lambda: None,
) -> None:
    """Operate until cancelled, from the beginning again whenever the watches have ended.

    ``again`` is called before each new beginning: Kopf leaves its signal handlers behind.
    Raises InputError for settings that no waiting mends, SetUpError if the lead is lost.
    """
    pause = backoff.Backoff(random.Random(), AGAIN_FIRST_REAL_S, AGAIN_MOST_REAL_S)
    while True:
        began_real_s = clock.real_s()
        try:
            return await Operator(cluster, clock, settings).run(started)
        except Unwatched as error:
            _log.info("%s; beginning again once all is there", error)
        if clock.real_s() - began_real_s > 2 * AGAIN_MOST_REAL_S:
            pause.reset()
        again()
        await clock.sleep_real(pause.next_real_s())


class Operator:
    """Everything that runs in the operator, for one cluster."""

    def __init__(self, cluster: ports.Cluster, clock: ports.Clock, settings: Settings) -> None:
        self._cluster = cluster
        self._clock = clock
        self._settings = settings
        self.world = world.World()
        self.telemetry = Telemetry()
        self._events = events.EventSink(cluster, names.OPERATOR, clock)
        self._scraper = scrape.Scraper(clock)
        self._gateways = demand.Gateways(
            cluster,
            settings.namespace,
            settings.token,
            clock,
            on_snapshot=self._on_snapshot,
            on_turnout=lambda _: self._mark_all(),
            on_troubles=lambda _: self._mark_all(),
        )
        self.reconciler = reconciler.Reconciler(
            cluster,
            self.world,
            self._gateways,
            self._scraper,
            self._events,
            clock,
            self.telemetry,
        )
        self.queue: workqueue.WorkQueue[Key] = workqueue.WorkQueue(
            self._work, clock, random.Random(), settings.workers, self._on_error
        )
        self._handlers = handlers.Handlers(self.world, self._mark, self._on_claims)
        self._election = leases.LeaderElection(
            cluster,
            settings.namespace,
            names.OPERATOR_LEASE,
            settings.identity,
            clock,
            duration_real_s=settings.lease_real_s,
            has_ended=instances.has_ended,
        )
        self._rivals = rivals.Rivals(cluster, settings.namespace, names.OPERATOR_LEASE, clock)
        self._sensing = sensing.Sensing(self.world, self._scraper, clock, self._mark)

    async def run(self, started: Callable[[Mapping[str, Any]], None]) -> None:
        """Wait for the lead, then operate until cancelled.

        Raises SetUpError if the lead is lost, Unwatched if the watches end.
        """
        async with self._metrics_server():
            await patience.until(self._look, self._clock)
            async with self._election, self._gateways, self._scraper:
                await self._operate(started)

    async def _operate(self, started: Callable[[Mapping[str, Any]], None]) -> None:
        ready, stop = asyncio.Event(), asyncio.Event()
        background: tuple[Coroutine[Any, Any, Any], ...] = (
            self._rivals.run(),
            self._events.run(),
            self._gateways.run(),
            self._scraper.run(),
            self._sensing.run(),
            self._decide(),
            self._resync(),
            self._election.lost.wait(),
        )
        tasks = [asyncio.ensure_future(work) for work in background]
        watching = asyncio.ensure_future(self._watch(stop, ready))
        listed = asyncio.ensure_future(ready.wait())
        try:
            await _first(listed, watching, *tasks)
            started({"identity": self._settings.identity})
            await _first(watching, *tasks)
            if self._election.lost.is_set():
                raise errors.SetUpError("lost the lead to another operator")
        finally:
            # Kopf cancels whatever was started after it when it ends: our own tasks go first.
            for task in (listed, *tasks):
                task.cancel()
            await asyncio.gather(listed, *tasks, return_exceptions=True)
            stop.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_REAL_S):
                    await asyncio.gather(watching, return_exceptions=True)

    async def _watch(self, stop: asyncio.Event, ready: asyncio.Event) -> None:
        source = credentials.Credentials(self._settings.kubeconfig)
        try:
            await kopf.operator(
                registry=self._handlers.registry(handlers.login(source)),
                settings=handlers.settings(),
                clusterwide=True,
                standalone=True,
                # Else Kopf asks for our user's name, and a container's has none. It is a str.
                identity=self._settings.identity,  # type: ignore[arg-type]
                stop_flag=stop,
                ready_flag=ready,
            )
        except Exception as error:
            raise Unwatched(f"the watches of the API server ended: {error}") from error

    async def _look(self) -> None:
        """Whether the API server answers, agrees on the time scale and knows ModelServes."""
        settings = self._settings
        await timescale.check(self._cluster, settings.namespace, settings.time_scale)
        try:
            await self._cluster.list(ports.MODELSERVES)
        except errors.NotFound as error:
            raise errors.SetUpError(
                "the API server knows no ModelServe: install the CRDs (crds/)"
            ) from error

    async def _decide(self) -> None:
        # What a gateway counted before we came would look like a burst if it spoke late.
        await self._gateways.introduced()
        await self.queue.run()

    async def _work(self, key: Key) -> float | None:
        # While another may lead, nothing is written.
        await self._rivals.none_before_us.wait()
        await self._election.until_certain()
        requeue_real_s = await self.reconciler.reconcile(key)
        self.telemetry.depth.set(self.queue.depth)
        self._sensing.aim()
        if key not in self.world.modelserves:
            self.queue.forget(key)
        return requeue_real_s

    def _on_error(self, key: Key, error: Exception, at_real_s: float) -> None:
        wait_real_s = at_real_s - self._clock.real_s()
        if isinstance(error, errors.Conflict | errors.NotFound):
            _log.info("%s: %s; again in %.2f s", key, error, wait_real_s)
        elif isinstance(error, errors.ModelServeError):
            _log.warning("%s: %s; again in %.1f s", key, error, wait_real_s)
        else:
            _log.error("%s: again in %.1f s", key, wait_real_s, exc_info=error)

    def _mark(self, key: Key, delay_real_s: float = 0.0) -> None:
        self.queue.mark(key, delay_real_s)

    def _mark_all(self) -> None:
        for key in tuple(self.world.modelserves):
            self._mark(key)

    def _on_claims(self) -> None:
        for key in self.reconciler.short_of_gpus():
            self._mark(key)

    def _on_snapshot(self, view: ports.GatewayView, before: ports.GatewayView | None) -> None:
        previous = before.snapshot if before else None
        for change in sensing.changes(view.snapshot, previous):
            if change.key in self.world.modelserves:
                self._mark(change.key, change.delay_real_s)

    async def _resync(self) -> None:
        """Now and then, compare with a list: Kopf tells of no deletion it missed."""
        while True:
            await self._clock.sleep_real(self._settings.resync_real_s)
            try:
                await self._compare()
            except errors.ClusterError as error:
                _log.warning("no resync: %s", error)

    async def _compare(self) -> None:
        lists = (
            (ports.MODELSERVES, ""),
            (ports.DEPLOYMENTS, labels.CHILDREN),
            (ports.PODS, labels.CHILDREN),
        )
        for resource, selector in lists:
            known = self.world.bodies(resource)
            items, _ = await self._cluster.list(resource, label_selector=selector)
            there = {item["metadata"]["uid"] for item in items}
            for body in known:
                if body["metadata"]["uid"] not in there:
                    self._handlers.gone(resource, body)
            for item in items:
                self._handlers.changed(resource, item)

    @contextlib.asynccontextmanager
    async def _metrics_server(self) -> AsyncIterator[None]:
        app = web.Application()
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/healthz", self._healthz)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        host, port = self._settings.metrics_listen
        try:
            try:
                await web.TCPSite(runner, host, port).start()
            except OSError as error:
                raise errors.SetUpError(
                    f"cannot listen on {host}:{port} ({error.strerror}); "
                    "choose another address with --metrics-listen"
                ) from error
            yield
        finally:
            await runner.cleanup()

    async def _metrics(self, _: web.Request) -> web.Response:
        text = prometheus.generate_latest(self.telemetry.registry)
        return web.Response(body=text, headers={"Content-Type": prometheus.CONTENT_TYPE_LATEST})

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok")


async def _first(*tasks: "asyncio.Future[Any]") -> None:
    """Until one of them ends; raises what that one raised."""
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
