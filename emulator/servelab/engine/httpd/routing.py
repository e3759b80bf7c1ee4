"""Which route a request takes: by exact path, else by patterns in the routes' order. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from servelab.engine import exchange
from servelab.engine.exchange import Route


@dataclass(frozen=True, slots=True)
class Match:
    """The route and the path's parts; without a route, the methods that the path has."""

    route: Route | None
    allowed: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)


NOWHERE = Match(None)


class Router:
    """The routes of one site."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._patterns = [(exchange.pattern(route.path), route) for route in routes]
        paths = dict.fromkeys(route.path for route in routes if "{" not in route.path)
        self._static = {path: self._by_method(path) for path in paths}

    def find(self, method: str, path: str) -> Match:
        """The first route of the path with this method."""
        known = self._static.get(path)
        if known is None:
            known = self._by_method(path)
        found = known.get(method)
        if found is not None:
            return found
        return Match(None, tuple(known)) if known else NOWHERE

    def _by_method(self, path: str) -> Mapping[str, Match]:
        found: dict[str, Match] = {}
        for pattern, route in self._patterns:
            match = pattern.fullmatch(path)
            if match is not None and route.method not in found:
                found[route.method] = Match(route, parameters=match.groupdict())
        return found
