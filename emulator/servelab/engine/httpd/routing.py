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
        """Paths without parts are told by name, the others by patterns: few, which all may fit."""
        self._patterns = [
            (place, exchange.pattern(route.path), route)
            for place, route in enumerate(routes)
            if "{" in route.path
        ]
        named: dict[str, list[tuple[int, Route]]] = {}
        for place, route in enumerate(routes):
            if "{" not in route.path:
                named.setdefault(route.path, []).append((place, route))
        self._static = {path: self._by_method(path, found) for path, found in named.items()}

    def find(self, method: str, path: str) -> Match:
        """The first route of the path with this method."""
        known = self._static.get(path)
        if known is None:
            known = self._by_method(path)
        found = known.get(method)
        if found is not None:
            return found
        return Match(None, tuple(known)) if known else NOWHERE

    def _by_method(self, path: str, named: Sequence[tuple[int, Route]] = ()) -> Mapping[str, Match]:
        fitting = [(place, Match(route)) for place, route in named]
        for place, pattern, route in self._patterns:
            match = pattern.fullmatch(path)
            if match is not None:
                fitting.append((place, Match(route, parameters=match.groupdict())))
        found: dict[str, Match] = {}
        for _, each in sorted(fitting, key=lambda one: one[0]):
            if each.route is not None:
                found.setdefault(each.route.method, each)
        return found
