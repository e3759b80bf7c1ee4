"""List, then watch for ever, on plain dictionaries; with the ways a watch fails taken care of.

A dropped connection goes on from the last version seen (bookmarks included); a version too old
(410) lists again and reports the difference, vanished objects as DELETED; a silent connection is
given up and opened anew; errors are retried with a growing, jittered pause.
"""

import contextlib
import json
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from modelserve import errors, ports
from modelserve.adapters import backoff, failures

log = logging.getLogger(__name__)

PAGE_SIZE = 500
# API servers send a bookmark about once a minute; the same figure as Kopf's.
SILENCE_REAL_S = 70.0
PAUSE_FIRST_REAL_S = 0.1
PAUSE_MOST_REAL_S = 30.0


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects to list or watch."""

    resource: ports.Resource
    namespace: str | None = None
    label_selector: str = ""
    field_selector: str = ""

    def query(self) -> dict[str, str]:
        """The query parameters that say so."""
        query = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {k: v for k, v in query.items() if v}


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list: items, the list's version, and where to go on ("" at the end)."""

    items: Sequence[ports.Object]
    version: str
    resume: str = ""


class Source(Protocol):
    """The two raw calls that a list-watch is made of."""

    async def list_page(self, selection: Selection, limit: int, resume: str = "") -> Page: ...

    def stream(
        self, selection: Selection, version: str, silence_real_s: float
    ) -> contextlib.AbstractAsyncContextManager[AsyncIterator[bytes]]: ...


async def list_all(source: Source, selection: Selection) -> tuple[list[ports.Object], str]:
    """Every page of a list; begins again, once, if the server forgot the version of the first."""
    try:
        return await _list_pages(source, selection)
    except errors.Expired:
        return await _list_pages(source, selection)


async def _list_pages(source: Source, selection: Selection) -> tuple[list[ports.Object], str]:
    page = await source.list_page(selection, PAGE_SIZE)
    items = list(page.items)
    while page.resume:
        page = await source.list_page(selection, PAGE_SIZE, page.resume)
        items += page.items
    return items, page.version


class ListWatch:
    """An endless asynchronous iterator of WatchEvents. One consumer; ``aclose`` when done."""

    def __init__(
        self,
        source: Source,
        selection: Selection,
        clock: ports.Clock,
        rng: random.Random,
        silence_real_s: float = SILENCE_REAL_S,
    ) -> None:
        self._source = source
        self._selection = selection
        self._clock = clock
        self._silence_real_s = silence_real_s
        self._pause = backoff.Backoff(rng, PAUSE_FIRST_REAL_S, PAUSE_MOST_REAL_S)
        self._known: dict[tuple[str, str], ports.Object] = {}
        self._version = ""
        self._complaint = ""
        self._events = self._run()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ports.WatchEvent:
        return await anext(self._events)

    async def aclose(self) -> None:
        """End the watch and close its connection."""
        await self._events.aclose()

    async def _run(self) -> AsyncGenerator[ports.WatchEvent]:
        while True:
            try:
                if not self._version:
                    for event in await self._relist():
                        yield event
                async with contextlib.aclosing(self._follow()) as events:
                    async for event in events:
                        yield event
            except errors.Expired:
                self._version = ""
                # Its first pause is short; a server that forgets at once must not be flooded.
                await self._clock.sleep_real(self._pause.next_real_s())
            except errors.ClusterError as error:
                await self._wait_after(error)

    async def _relist(self) -> list[ports.WatchEvent]:
        items, version = await list_all(self._source, self._selection)
        fresh = {_key(item): item for item in items}
        events = list(_differences(self._known, fresh))
        self._known = fresh
        self._version = version
        synced = {"metadata": {"resourceVersion": version}}
        return [*events, ports.WatchEvent(ports.Change.SYNCED, synced)]

    async def _follow(self) -> AsyncGenerator[ports.WatchEvent]:
        """One connection, to its end. Ends without an error only after something was heard."""
        heard = False
        async with self._source.stream(
            self._selection, self._version, self._silence_real_s
        ) as lines:
            async for line in lines:
                event = self._read(line)
                heard = True
                self._heard()
                if event is not None:
                    yield event
        if not heard:
            raise errors.Unavailable(f"watch of {self._what()}: closed without a word")

    def _read(self, line: bytes) -> ports.WatchEvent | None:
        try:
            message = json.loads(line)
            kind, item = message["type"], message["object"]
        except (ValueError, KeyError, TypeError) as error:
            raise errors.Unavailable(f"watch of {self._what()}: cut in mid-line") from error
        if kind == "ERROR":
            raise failures.from_status(f"watch of {self._what()}", item)
        version = item["metadata"].get("resourceVersion", "")
        self._version = version or self._version
        return None if kind == "BOOKMARK" else self._note(kind, item)

    def _note(self, kind: str, item: ports.Object) -> ports.WatchEvent:
        key = _key(item)
        if kind == "DELETED":
            self._known.pop(key, None)
            return ports.WatchEvent(ports.Change.DELETED, item)
        change = ports.Change.MODIFIED if key in self._known else ports.Change.ADDED
        self._known[key] = item
        return ports.WatchEvent(change, item)

    def _heard(self) -> None:
        self._pause.reset()
        self._complaint = ""

    async def _wait_after(self, error: errors.ClusterError) -> None:
        # Once per kind of trouble: an API server away for an hour is one line, not thousands.
        complaint = f"{type(error).__name__} {error.status}"
        level = logging.DEBUG if complaint == self._complaint else logging.WARNING
        log.log(level, "%s; trying again", error)
        self._complaint = complaint
        wish_real_s = getattr(error, "retry_after_s", None) or 0.0
        await self._clock.sleep_real(max(self._pause.next_real_s(), wish_real_s))

    def _what(self) -> str:
        return self._selection.resource.path(self._selection.namespace)


def _key(item: ports.Object) -> tuple[str, str]:
    metadata = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _differences(
    old: Mapping[tuple[str, str], ports.Object], new: Mapping[tuple[str, str], ports.Object]
) -> Iterator[ports.WatchEvent]:
    """What must have happened between two lists; the new one of a recreated object is ADDED."""
    for key, item in old.items():
        if key not in new or _uid(new[key]) != _uid(item):
            yield ports.WatchEvent(ports.Change.DELETED, item)
    for key, item in new.items():
        before = old.get(key)
        if before is None or _uid(before) != _uid(item):
            yield ports.WatchEvent(ports.Change.ADDED, item)
        elif before["metadata"].get("resourceVersion") != item["metadata"].get("resourceVersion"):
            yield ports.WatchEvent(ports.Change.MODIFIED, item)


def _uid(item: ports.Object) -> str:
    return str(item["metadata"].get("uid", ""))
