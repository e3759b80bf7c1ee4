"""The links of all emulated nodes, which transfers of cold starts share.

Keys are ``<node>/load/<pod UID>`` and ``<node>/pull/<pod UID>/<container>``; names of links are
those of ``servelab.timing.routes``. Times are emulated seconds.
"""

from collections.abc import Callable, Iterator, Mapping

from servelab.timing import caches, routes, shared, transfers

# An end and the time at which somebody acts on it differ by roundings of a Unix time.
ROUNDING_S = 0.001


class Links:
    """One per process. ``on_moved`` hears of each key whose end may have moved."""

    def __init__(self, on_moved: Callable[[str], None] = lambda key: None) -> None:
        self.shared = shared.Shared()
        self._names: set[str] = set()
        self._stated: dict[str, float] = {}
        self._slowed: dict[tuple[str, str], float] = {}  # by who has it slow, and link
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
        self._stated.update(rates)
        found = {name: rate / self._slowness(name) for name, rate in rates.items()}
        self.shared.declare(found, now_s)

    def slow(self, owner: str, within: str, factor: float, now_s: float) -> None:
        """The link of that name and those below are so many times slower, for the owner's sake."""
        known = self._slowed.pop((owner, within), 1.0)
        if factor != 1.0:
            self._slowed[owner, within] = factor
        if factor != known:
            stated = {k: v for k, v in self._stated.items() if f"{k}/".startswith(f"{within}/")}
            self.declare(stated, now_s)
            self.tell()

    @property
    def slowed(self) -> int:
        """How many links are slower than stated, counted once for each who has them so."""
        return len(self._slowed)

    def _slowness(self, name: str) -> float:
        found = (f for (_, link), f in self._slowed.items() if f"{name}/".startswith(f"{link}/"))
        return max(found, default=1.0)

    def drop(self, within: str) -> None:
        """Forget the link of that name and those below, each as soon as nothing passes it."""
        gone = [name for name in self._names if f"{name}/".startswith(f"{within}/")]
        self._names.difference_update(gone)
        for name in gone:
            self._stated.pop(name, None)
        for owner, link in [key for key in self._slowed if f"{key[1]}/".startswith(f"{within}/")]:
            del self._slowed[owner, link]
        self.shared.drop_links(gone)


class NodeLinks:
    """``transfers.Transfers`` of one node, over links that other nodes use too.

    It has the node's page cache: weights that were read from files once are read from memory, until
    others have taken their room.
    """

    def __init__(self, links: Links, node: str) -> None:
        self._links = links
        self._shared = links.shared
        self._node = node
        self._rates: dict[str, float] = {}
        self._keys: set[str] = set()
        self._reads: dict[str, routes.WeightRead] = {}
        self._cached = caches.Cached()
        self._room_bytes: Callable[[], int] = lambda: 0
        self._on_read: Callable[[], None] = lambda: None

    @property
    def changes(self) -> int:
        return self._shared.changes

    def remember(
        self,
        room_bytes: Callable[[], int],
        on_read: Callable[[], None],
        warm: Mapping[str, int],
    ) -> None:
        """Keep a page cache of so many bytes; ``on_read`` hears when ``warm`` has changed."""
        self._room_bytes, self._on_read = room_bytes, on_read
        self._cached = caches.Cached(dict(warm))

    @property
    def warm(self) -> Mapping[str, int]:
        """Bytes of weights in the page cache, the least recently read first."""
        if not self._cached.by_file:
            return {}
        return caches.shrink(self._cached, self._room_bytes()).by_file

    def is_warm(self, file: str, size_bytes: float) -> bool:
        """Whether all of these weights are in the page cache."""
        return self.warm.get(file, 0) >= round(size_bytes)

    def learn(self, rates: Mapping[str, float]) -> None:
        """Bytes per second of links; they count from the next start over them."""
        self._rates.update(rates)

    def slow(self, owner: str, part: str, factor: float, now_s: float) -> None:
        """A part of the node's links is so many times slower, for the owner's sake; 1: no more."""
        self._links.slow(owner, routes.on_node(self._node, part), factor, now_s)

    def start(self, key: str, work: transfers.Work, now_s: float, after: str | None = None) -> None:
        if key in self._keys:
            self._end_read(key, now_s)
        if isinstance(work, routes.WeightRead) and work.warm is not None:
            self._reads[key] = work
            work = work.warm if self.is_warm(work.file, work.size_bytes) else work
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
            if now_s is not None:
                self._end_read(key, now_s)
            self._reads.pop(key, None)
            self._keys.discard(key)
            self._shared.stop(key, None if now_s is None else self._act_s(key, now_s))
            self._links.tell()

    def under_way(self, now_s: float) -> Iterator[tuple[str, float, float]]:
        """What moves at that time: kind (pull, load), bytes left, bytes per second."""
        for key in self._keys:
            progress = self._shared.progress(key, now_s)
            left = progress.size_bytes - progress.done_bytes
            if progress.bytes_per_s > 0 and left > 0 and progress.left_s > 0:
                yield key.split("/")[1], left, progress.bytes_per_s

    def close(self, now_s: float) -> None:
        """The node is gone, with all that came to it and its own links."""
        self._on_read = lambda: None
        for key in list(self._keys):
            self.stop(key, now_s)
        self._links.drop(routes.node(self._node))

    def _end_read(self, key: str, now_s: float) -> None:
        """What has been read so far is in the page cache, and others have made room."""
        work = self._reads.pop(key, None)
        if work is None:
            return
        before = self.warm
        done = round(self._shared.progress(key, self._act_s(key, now_s)).done_bytes)
        # One read from memory that was broken off leaves all of it there.
        done = max(done, before.get(work.file, 0))
        self._cached = caches.read(caches.Cached(before), work.file, done, self._room_bytes())
        if list(self.warm.items()) != list(before.items()):
            self._on_read()

    def _act_s(self, key: str, now_s: float) -> float:
        ends_s = self._shared.ends_at_s(key)
        return ends_s if abs(ends_s - now_s) < ROUNDING_S else now_s
