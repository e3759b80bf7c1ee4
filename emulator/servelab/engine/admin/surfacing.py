"""A surface that does not answer, or answers wrong, as the faults say."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from modelserve.engines import types
from servelab.engine.admin import expositions, faults
from servelab.engine.admin.faults import Injected
from servelab.engine.exchange import Exchange, Handler, Request, Response, Route
from servelab.engine.surfaces.layer import Layer
from servelab.engine.surfaces.surface import Surface

_GAP = Response(503, content_type=None)


class Role(StrEnum):
    """What a path is for."""

    HEALTH = "health"
    METRICS = "metrics"
    OTHER = "other"


def role(route: Route, profile: types.Profile) -> Role:
    """What a route is for; liveness is nobody's readiness."""
    if route.method not in ("GET", "HEAD"):
        return Role.OTHER
    if route.path in ("/metrics", profile.metrics_path):
        return Role.METRICS
    known = route.path in (profile.health_path, profile.startup_path)
    parts = route.path.strip("/").split("/")
    if known or (any(part.startswith("health") for part in parts) and parts[-1] != "live"):
        return Role.HEALTH
    return Role.OTHER


class FaultySurface(Layer):
    """The surface under faults."""

    def __init__(
        self,
        inner: Surface,
        profile: types.Profile,
        injected: Mapping[str, Injected],
        now_s: Callable[[], float],
    ) -> None:
        super().__init__(inner)
        self._faults = injected
        self._now_s = now_s
        self._held: list[tuple[Handler, Exchange]] = []
        self._stale: dict[str, tuple[Injected, Response]] = {}
        self._base: expositions.Baseline | None = None
        self._plain = list(inner.routes())
        self._routes = [self._wrapped(route, role(route, profile)) for route in self._plain]
        self._metrics = [each for each in self._plain if role(each, profile) is Role.METRICS]

    def routes(self) -> Sequence[Route]:
        """The same paths."""
        return self._routes

    def release(self) -> None:
        """Answer what was held, unless it still is."""
        held, self._held = self._held, []
        for handler, exchange in held:
            handler(exchange)

    def reset_counters(self, at_unix_s: float) -> None:
        """From now on, scrapes count from here."""
        for route in self._metrics[:1]:
            scrape = _Scrape(Request("GET", route.path, route.path, {}))
            route.handler(scrape)
            if scrape.response is not None:
                text = scrape.response.body.decode()
                self._base = expositions.baseline(text, at_unix_s)

    def _wrapped(self, route: Route, kind: Role) -> Route:
        handlers: Mapping[Role, Callable[[Exchange], None]] = {
            Role.HEALTH: lambda exchange: self._health(exchange, route),
            Role.METRICS: lambda exchange: self._scraped(exchange, route),
            Role.OTHER: route.handler,
        }
        inner = handlers[kind]

        def handler(exchange: Exchange) -> None:
            if self._faults and faults.is_silent(self._faults, self._now_s()):
                self._hold(handler, exchange)
            else:
                inner(exchange)

        return replace(route, handler=handler)

    def _hold(self, handler: Handler, exchange: Exchange) -> None:
        entry = (handler, exchange)
        self._held.append(entry)
        exchange.on_gone(lambda: self._held.remove(entry) if entry in self._held else None)

    def _health(self, exchange: Exchange, route: Route) -> None:
        if self._holding("unready") is None:
            route.handler(exchange)
        else:
            exchange.respond(self._inner.unready(exchange.request))

    def _scraped(self, exchange: Exchange, route: Route) -> None:
        gap = self._holding("scrape_gap")
        if gap is not None:
            if getattr(gap.fault, "answer", "") == "silent":
                self._hold(lambda later: self._scraped(later, route), exchange)
            else:
                exchange.respond(_GAP)
            return
        stale = self._holding("stale_metrics")
        kept = self._stale.get(route.path)
        if stale is not None and kept is not None and kept[0] is stale:
            exchange.respond(kept[1])
            return
        scrape = _Scrape(exchange.request)
        route.handler(scrape)
        if scrape.response is None:
            return
        response = self._counted(scrape.response)
        if stale is not None:
            self._stale[route.path] = (stale, response)
        exchange.respond(response)

    def _counted(self, response: Response) -> Response:
        if self._base is None or response.status != 200:
            return response
        text = expositions.rebased(response.body.decode(), self._base)
        return response._replace(body=text.encode())

    def _holding(self, kind: str) -> Injected | None:
        found = self._faults.get(kind)
        return found if found is not None and found.holds(self._now_s()) else None


class _Scrape:
    """An exchange that keeps the answer."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.response: Response | None = None

    def respond(self, response: Response) -> None:
        self.response = response

    def begin(self, response: Response) -> None:
        self.response = response

    def write(self, data: bytes) -> None:
        if self.response is not None:
            self.response = self.response._replace(body=self.response.body + data)

    def end(self) -> None:
        """All is there."""

    def fail(self, error: Exception) -> None:
        """A scrape is answered at once."""

    def on_gone(self, callback: Callable[[], None]) -> None:
        """Nobody goes."""

    def later(self, act: Callable[[], None]) -> None:
        act()
