"""What the emulator's process says of itself: /healthz, /readyz and figures, from its first moment.

It may wait long, for an API server or for another emulator. It lives all that time, and like any
controller that stands by for a leader it is ready: there is nothing that it lacks. One that plays
nodes and may not write, as its lead is in doubt, is not ready, and lives: a restart mends nothing.
"""

from collections.abc import Awaitable, Callable

from aiohttp import web

from servelab.node import figures

_AWAY = "the API server has not let us begin yet"
_BEGINS = "no nodes are played yet"


class Standing:
    """Serve its ``app``. Tell it what the process has come to."""

    def __init__(self, numbers: figures.Figures) -> None:
        self._numbers = numbers
        self._waits_for: Callable[[], str] | None = None
        self._doubt: Callable[[], str] | None = None
        self._count: Callable[[], None] = lambda: None
        self._dcgm: Callable[[], Awaitable[web.Response]] | None = None
        self.app = web.Application()
        self.app.router.add_get("/metrics", self._metrics)
        self.app.router.add_get("/metrics/dcgm", self._exported)
        for path in ("/healthz", "/livez"):
            self.app.router.add_get(path, self._healthz)
        self.app.router.add_get("/readyz", self._readyz)

    def stands_by(self, waits_for: Callable[[], str]) -> None:
        """Only others are waited for; ``waits_for`` says for whom, or nothing."""
        self._waits_for = waits_for

    def plays(
        self,
        count: Callable[[], None],
        dcgm: Callable[[], Awaitable[web.Response]],
        doubt: Callable[[], str],
    ) -> None:
        """Nodes are played: ``count`` brings the figures up to date, ``dcgm`` tells of GPUs.

        ``doubt`` says why nothing may be written for them now, or nothing.
        """
        self._count, self._dcgm, self._doubt = count, dcgm, doubt

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _readyz(self, request: web.Request) -> web.Response:
        if self._doubt is not None:
            why = self._doubt()
            return _not_ready(why) if why else web.Response(text="ok")
        if self._waits_for is None:
            return _not_ready(_AWAY)
        return web.Response(text=f"ok, standing by: {self._waits_for() or _BEGINS}")

    async def _metrics(self, request: web.Request) -> web.Response:
        self._count()
        text = self._numbers.render()
        return web.Response(body=text, content_type="text/plain", charset="utf-8")

    async def _exported(self, request: web.Request) -> web.Response:
        return web.Response(text="") if self._dcgm is None else await self._dcgm()


def _not_ready(why: str) -> web.Response:
    return web.Response(status=503, text=f"not ready: {why}")
