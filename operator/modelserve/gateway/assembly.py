"""All parts of a gateway, wired together, from start to drained end."""

import asyncio
import contextlib
import logging
import os
import socket
from dataclasses import dataclass

from aiohttp import web

from modelserve import errors, ports
from modelserve.adapters import membership
from modelserve.api import names
from modelserve.gateway import dispatch, exchange, feed, internal, metrics, probing, public, relay
from modelserve.gateway import view as views

log = logging.getLogger(__name__)

# After the drain: what a handler gets to write its last words.
LAST_WORDS_REAL_S = 1.0
_BACKLOG = 4096


@dataclass(frozen=True, slots=True)
class Settings:
    """What a gateway is told at its start."""

    token: str
    identity: str
    epoch: str
    namespace: str = names.SYSTEM_NAMESPACE
    listen: tuple[str, int] = ("127.0.0.1", 0)
    internal_listen: tuple[str, int] = ("127.0.0.1", 0)
    advertise_host: str = ""  # where the operator reaches the internal port; left out: its host
    drain_real_s: float = 10.0
    max_body_bytes: int = public.MAX_BODY_BYTES


class Gateway:
    """One gateway process. ``start``, then ``run`` until something breaks, then ``stop``."""

    def __init__(self, cluster: ports.Cluster, clock: ports.Clock, settings: Settings) -> None:
        self.dispatcher = dispatch.Dispatcher(clock)
        self.view = views.View(cluster, self.dispatcher)
        self.metrics = metrics.Metrics(self.dispatcher)
        self.view.removed.append(self.metrics.remove)
        self._cluster = cluster
        self._clock = clock
        self._settings = settings
        self._exit = contextlib.AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self._membership: asyncio.Task[None] | None = None
        self.address = ("", 0)
        self.internal_address = ("", 0)

    async def start(self) -> None:
        """Serve, and follow the cluster. Raises SetUpError for a port that is taken."""
        settings = self._settings
        session = await self._exit.enter_async_context(relay.open_session())
        prober = probing.Prober(self.dispatcher, session)
        self._exit.push_async_callback(prober.close)
        context = exchange.Context(self.dispatcher, self.view, session, self.metrics)
        self._public = public.PublicApi(context, settings.max_body_bytes)
        demand = feed.Feed(self.dispatcher, settings.identity, settings.epoch)
        private = internal.InternalApi(self.dispatcher, demand, settings.token)
        self.internal_address = await self._serve(private.build(), settings.internal_listen, 0.1)
        self.address = await self._serve(self._public.build(), settings.listen, LAST_WORDS_REAL_S)
        self._tasks = [
            asyncio.create_task(self.view.run(), name="view"),
            asyncio.create_task(self.dispatcher.keep_time(), name="time"),
        ]
        host = settings.advertise_host or self.internal_address[0]
        self._membership = asyncio.create_task(
            membership.Membership(
                self._cluster,
                settings.namespace,
                f"{names.GATEWAY}-{settings.identity}",
                join(host, self.internal_address[1]),
                settings.epoch,
                self._clock,
            ).run(),
            name="membership",
        )

    async def run(self) -> None:
        """Wait for ever; raises what a part of it died of."""
        assert self._membership is not None, "start it first"
        done, _ = await asyncio.wait(
            {*self._tasks, self._membership}, return_when=asyncio.FIRST_COMPLETED
        )
        for task in done:
            task.result()

    async def stop(self) -> None:
        """Leave in good order: out of the readiness, out of the membership, drain, refuse, end."""
        self._public.stopping = True
        await _cancel(self._membership)
        await self._drain()
        self.dispatcher.stop()
        await self._exit.aclose()
        await _cancel(*self._tasks)

    async def _drain(self) -> None:
        """Let what is in flight end, for a while. What is held may still be sent meanwhile."""
        end_real_s = self._clock.real_s() + self._settings.drain_real_s
        while self.dispatcher.in_flight and self._clock.real_s() < end_real_s:
            await self._clock.sleep_real(0.05)

    async def _serve(
        self, app: web.Application, address: tuple[str, int], shutdown_real_s: float
    ) -> tuple[str, int]:
        runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=shutdown_real_s
        )
        await runner.setup()
        self._exit.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, *address, backlog=_BACKLOG)
        try:
            await site.start()
        except OSError as error:
            raise errors.SetUpError(
                f"cannot listen on {join(*address)}: {os.strerror(error.errno or 0).lower()}; "
                "choose another port or stop what uses it"
            ) from error
        host, port, *_ = runner.addresses[0]
        return host, port


async def _cancel(*tasks: asyncio.Task[None] | None) -> None:
    running = [task for task in tasks if task is not None]
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


def join(host: str, port: int) -> str:
    """``host:port``, an IPv6 host in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def default_identity(port: int) -> str:
    """This host's name and the internal port: the same again after a restart."""
    host = socket.gethostname().lower().removeprefix(f"{names.GATEWAY}-")
    label = "".join(c if c.isalnum() and c.isascii() else "-" for c in host)[:40].strip("-")
    return f"{label or 'host'}-{port}"
