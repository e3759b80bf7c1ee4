"""A read model of one kind of object, kept by a watch."""

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from modelserve import ports

log = logging.getLogger(__name__)

# So long a store takes in what has arrived before it lets others have a turn.
SLICE_REAL_S = 0.005

# (old, new): None, object for a new one; object, None for one that is gone.
Callback = Callable[[ports.Object | None, ports.Object | None], None]
IndexKeys = Callable[[ports.Object], Sequence[str]]


class Store:
    """All objects of a selection as the API server last told them. ``run`` it as a task.

    Objects are shared, not copied: treat them as read-only. Callbacks run in the event loop and
    must not block; one that raises is logged and does no harm to the others.
    """

    def __init__(
        self,
        cluster: ports.Cluster,
        resource: ports.Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        indexes: Mapping[str, IndexKeys] | None = None,
        keep_owners: bool = True,
        alike: bool = False,
        slice_real_s: float = SLICE_REAL_S,
    ) -> None:
        """Without ``keep_owners`` managedFields are dropped, which are half of a large object.

        Of objects that are ``alike`` in their labels and status, equal strings are kept once.
        """
        self._alike = alike
        self._keep_owners = keep_owners
        self._slice_real_s = slice_real_s
        self.synced = asyncio.Event()
        self._cluster = cluster
        self._resource = resource
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._objects: dict[tuple[str, str], ports.Object] = {}
        self._index_keys = dict(indexes or {})
        self._indexes: dict[str, dict[str, dict[tuple[str, str], ports.Object]]] = {
            name: {} for name in self._index_keys
        }
        self._callbacks: list[Callback] = []

    async def run(self) -> None:
        """Follow the watch until cancelled."""
        events = self._cluster.watch(
            self._resource,
            self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
        )
        clock = asyncio.get_running_loop().time
        pause_real_s = clock() + self._slice_real_s
        try:
            async for event in events:
                self.handle(event)
                if clock() >= pause_real_s:
                    # What has arrived is read without a pause, and others have things due.
                    await asyncio.sleep(0)
                    pause_real_s = clock() + self._slice_real_s
        finally:
            with contextlib.suppress(AttributeError):
                await events.aclose()  # type: ignore[attr-defined]

    def handle(self, event: ports.WatchEvent) -> None:
        """Take in one event; ``run`` does it for each, a test may do it by hand."""
        if event.change is ports.Change.SYNCED:
            self.synced.set()
        else:
            if not self._keep_owners:
                # In place: the watch holds the same object.
                cast(dict[str, Any], event.object["metadata"]).pop("managedFields", None)
            if self._alike:
                _share_strings(event.object)
            self._put(event.object, gone=event.change is ports.Change.DELETED)

    def on_change(self, callback: Callback) -> None:
        """Call it with (old, new) at each change from now on, and for what is there already."""
        self._callbacks.append(callback)
        for item in tuple(self._objects.values()):
            _call(callback, None, item)

    def get(self, namespace: str | None, name: str) -> ports.Object | None:
        """One object, or None; cluster-scoped ones have no namespace."""
        return self._objects.get((namespace or "", name))

    def items(self) -> Iterator[ports.Object]:
        """All objects, of a moment: safe to change things meanwhile."""
        return iter(tuple(self._objects.values()))

    def by_index(self, index: str, key: str) -> Sequence[ports.Object]:
        """The objects for which the index function gave this key."""
        return tuple(self._indexes[index].get(key, {}).values())

    def __len__(self) -> int:
        return len(self._objects)

    def _put(self, item: ports.Object, *, gone: bool) -> None:
        key = item["metadata"].get("namespace", ""), item["metadata"]["name"]
        old = self._objects.pop(key, None)
        if old is not None:
            self._unindex(key, old)
        if gone and old is None:
            return
        if not gone:
            self._objects[key] = item
            self._index(key, item)
        # Of a deleted object the last state is what the watch told of its end.
        for callback in self._callbacks:
            _call(callback, item if gone else old, None if gone else item)

    def _index(self, key: tuple[str, str], item: ports.Object) -> None:
        for name, keys in self._index_keys.items():
            for index_key in keys(item):
                self._indexes[name].setdefault(index_key, {})[key] = item

    def _unindex(self, key: tuple[str, str], item: ports.Object) -> None:
        for name, keys in self._index_keys.items():
            for index_key in keys(item):
                members = self._indexes[name].get(index_key, {})
                members.pop(key, None)
                if not members:
                    self._indexes[name].pop(index_key, None)


def _call(callback: Callback, old: ports.Object | None, new: ports.Object | None) -> None:
    try:
        callback(old, new)
    except Exception:
        log.exception("a callback of a store failed")


def _share_strings(found: Any) -> Any:
    """The same document, in place, with the one copy of each of its strings that all share."""
    if isinstance(found, str):
        return sys.intern(found)
    if isinstance(found, list):
        found[:] = map(_share_strings, found)
    elif isinstance(found, dict):
        entries = [(sys.intern(key), _share_strings(value)) for key, value in found.items()]
        found.clear()
        found.update(entries)
    return found
