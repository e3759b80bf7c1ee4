"""The links of all emulated nodes, which transfers of cold starts share.

Keys are ``<node>/load/<pod UID>`` and ``<node>/pull/<pod UID>/<container>``; names of links are
those of ``servelab.timing.routes``. Times are emulated seconds.
"""

from collections.abc import Callable, Mapping

from servelab.timing import routes, shared, transfers

# An end and the time at which somebody acts on it differ by roundings of a Unix time.
ROUNDING_S = 0.001


class Links:
    """One per process. ``on_moved`` hears of each key whose end may have moved."""

    def __init__(self, on_moved: Callable[[str], None] = lambda key: None) -> None:
        self.shared = shared.Shared()
        self._names: set[str] = set()
        self._on_moved = on_moved

    def of(self, node: str) -> "NodeLinks":
        """The node's view."""
        return NodeLinks(self, node)

    def tell(self) -> None:
        """Pass on whose ends have moved."""
        for key in self.shared.take_moved():
            self._on_moved(key)

    def declare(self, rates: Mapping[str, float], now_s: float) -> None:
        """Links that something is about to pass."""
        self._names.update(rates)
        self.shared.declare(rates, now_s)

    def drop(self, within: str) -> None:
        """Forget the link of that name and those below, each as soon as nothing passes it."""
        gone = [name for name in self._names if f"{name}/".startswith(f"{within}/")]
        self._names.difference_update(gone)
        self.shared.drop_links(gone)


class NodeLinks:
    """``transfers.Transfers`` of one node, over links that other nodes use too."""

    def __init__(self, links: Links, node: str) -> None:
        self._links = links
        self._shared = links.shared
        self._node = node
        self._rates: dict[str, float] = {}
        self._keys: set[str] = set()

    @property
    def changes(self) -> int:
        return self._shared.changes

    def learn(self, rates: Mapping[str, float]) -> None:
        """Bytes per second of links; they count from the next start over them."""
        self._rates.update(rates)

    def start(self, key: str, work: transfers.Work, now_s: float, after: str | None = None) -> None:
        paths = (stage.path for stage in work.stages)
        names = dict.fromkeys(name for path in paths for name in path)
        self._links.declare({name: self._rates[name] for name in names}, now_s)
        if key in self._keys:
            self._shared.stop(key, self._act_s(key, now_s))
        self._shared.start(key, work, now_s, after)
        self._keys.add(key)
        self._links.tell()

    def ends_at_s(self, key: str) -> float:
        return self._shared.ends_at_s(key)

    def progress(self, key: str, now_s: float) -> transfers.Progress:
        return self._shared.progress(key, now_s)

    def stop(self, key: str, now_s: float | None = None) -> None:
        if key in self._keys:
            self._keys.discard(key)
            self._shared.stop(key, None if now_s is None else self._act_s(key, now_s))
            self._links.tell()

    def close(self, now_s: float) -> None:
        """The node is gone, with all that came to it and its own links."""
        for key in list(self._keys):
            self.stop(key, now_s)
        self._links.drop(routes.node(self._node))

    def _act_s(self, key: str, now_s: float) -> float:
        ends_s = self._shared.ends_at_s(key)
        return ends_s if abs(ends_s - now_s) < ROUNDING_S else now_s
