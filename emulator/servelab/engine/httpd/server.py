"""The server: listens, routes, sweeps over its connections, drains."""

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Protocol

from modelserve.errors import ModelServeError
from servelab.engine.exchange import Request, Response, Route, WantedFault
from servelab.engine.httpd import aside
from servelab.engine.httpd.answer import Answer
from servelab.engine.httpd.connection import Connection, OnAccess
from servelab.engine.httpd.heads import FAULT, Heads
from servelab.engine.httpd.limits import BodyBudget, Limits
from servelab.engine.httpd.routing import Match, Router

LOGGER = logging.getLogger(__name__)
BACKLOG = 2048
SWEEP_S = 1.0


class Site(Protocol):
    """What is served: routes, and answers where there is none. A Surface is one."""

    @property
    def server(self) -> str | None: ...
    @property
    def vary(self) -> str | None: ...
    def routes(self) -> Sequence[Route]: ...
    def not_found(self, request: Request) -> Response: ...
    def wrong_method(self, request: Request, allowed: Sequence[str]) -> Response: ...
    def refused(self, request: Request, error: Exception) -> Response: ...
    def unready(self, request: Request) -> Response: ...


class HttpServer:
    """While ``loading`` is set, the site answers as one that is not ready yet.

    ``on_access(client, method, target, status)`` is told as each answer has begun;
    ``now_unix_s`` is the time for the header Date, None: the system's.
    """

    def __init__(
        self,
        site: Site,
        on_access: OnAccess | None = None,
        now_unix_s: Callable[[], float] | None = None,
        *,
        limits: Limits | None = None,
        routes: Sequence[Route] | None = None,
    ) -> None:
        """``routes``: other ones than the site's."""
        self.limits = limits or Limits()
        self.heads = Heads(site.server, site.vary)
        self.budget = BodyBudget(self.limits.bodies_bytes)
        self.loop = asyncio.get_running_loop()
        self.on_access = on_access
        self.loading = False
        self.tick_s = self.loop.time()
        self._site = site
        self._now_unix_s = now_unix_s
        self._router = Router(site.routes() if routes is None else routes)
        self._connections: set[Connection] = set()
        self._open = 0
        self._listener: asyncio.Server | None = None
        self._sweeping: asyncio.TimerHandle | None = None
        self._retired = False
        self._quiet = asyncio.Event()
        self._quiet.set()

    @property
    def open_exchanges(self) -> int:
        """Requests that are not answered yet."""
        return self._open

    @property
    def connections(self) -> int:
        """Clients that are connected."""
        return len(self._connections)

    @property
    def listening(self) -> bool:
        """Whether connections are taken."""
        return self._listener is not None

    async def start(self, sock: socket.socket) -> None:
        """Listen on a socket that is bound. Raises OSError where another one listens there."""
        # uvloop would not say that this failed.
        sock.listen(BACKLOG)
        self._listener = await self.loop.create_server(
            lambda: Connection(self), sock=sock, backlog=BACKLOG
        )

    def stop_listening(self) -> None:
        """Refuse connections, close idle ones, and each other one after its answer."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
        self._retired = True
        for connection in list(self._connections):
            connection.retire()

    async def quiet(self) -> None:
        """Wait until nobody is connected; after ``stop_listening``, until all is answered."""
        await self._quiet.wait()

    async def abort(self) -> None:
        """Stop at once: connections are cut, and whoever answers them is told."""
        self.stop_listening()
        for connection in list(self._connections):
            connection.cut()
        await self._quiet.wait()

    # What a connection calls.

    def joined(self, connection: Connection) -> None:
        """A client has come."""
        if not self._connections:
            self._quiet.clear()
            self._tick()
        self._connections.add(connection)
        if self._retired:
            # It was accepted before the listener closed.
            self.loop.call_soon(connection.retire)

    def left(self, connection: Connection) -> None:
        """A client has gone."""
        self._connections.discard(connection)
        if not self._connections:
            if self._sweeping is not None:
                self._sweeping.cancel()
            self._quiet.set()

    def done(self) -> None:
        """A request is answered or cut."""
        self._open -= 1

    def handle(self, answer: Answer) -> None:
        """Find the route of a request, and let it answer."""
        self._open += 1
        request = answer.request
        match = self._router.find(request.method, request.path)
        try:
            self._route(answer, request, match)
        except Exception as error:
            self.failed(answer, error)

    def digested(self, answer: Answer, error: Exception | None) -> None:
        """A handler has done its part aside, or raised."""
        answer.digesting = False
        answer.forget_body()
        self.budget.release(answer.reserved_bytes)
        answer.reserved_bytes = 0
        if error is not None:
            self.failed(answer, error)

    def failed(self, answer: Answer, error: Exception) -> None:
        """A handler raised."""
        told = isinstance(error, ModelServeError | WantedFault)
        if answer.begun or not answer.open or not told:
            LOGGER.error("%s failed", answer.request.path, exc_info=error)
        answer.fail(error)

    def refuse(self, answer: Answer, error: Exception) -> None:
        """Answer where a handler raised, or failed later."""
        try:
            answer.respond(self._site.refused(answer.request, error))
        except Exception:
            LOGGER.exception("%s could not be refused", answer.request.path)
            answer.respond(FAULT)

    def _route(self, answer: Answer, request: Request, match: Match) -> None:
        route = match.route
        if route is None:
            answer.respond(self._fallback(request, match))
            return
        if match.parameters:
            answer.request = request._replace(parameters=match.parameters)
        handler = route.handler
        if self.loading:
            if route.while_loading is None:
                answer.respond(self._site.unready(request))
                return
            handler = route.while_loading
        if route.aside and len(request.body) > self.limits.inline_body_bytes:
            aside.handle(answer, handler, self)
        else:
            handler(answer)

    def _fallback(self, request: Request, match: Match) -> Response:
        if match.allowed:
            return self._site.wrong_method(request, match.allowed)
        return self._site.not_found(request)

    def _tick(self) -> None:
        self.heads.set_date(self._now_unix_s() if self._now_unix_s is not None else None)
        self._sweeping = self.loop.call_later(SWEEP_S, self._tick)
        self.sweep(self.loop.time())

    def sweep(self, now_s: float) -> None:
        """Close what stands still, and cut the slowest readers if they hold too much together."""
        self.tick_s = now_s
        unread = [(each.sweep(now_s), each) for each in list(self._connections)]
        over_bytes = sum(n_bytes for n_bytes, _ in unread) - self.limits.all_unread_bytes
        if over_bytes <= 0:
            return
        for n_bytes, connection in sorted(unread, key=lambda each: each[0], reverse=True):
            if over_bytes <= 0:
                return
            connection.cut()
            over_bytes -= n_bytes
