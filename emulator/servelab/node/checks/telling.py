"""Events of the pods that play, and when each of them was told, and told again."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from modelserve import ports
from servelab.node.checks import recording

# For events of the recording that have not come: a busy emulator writes them late.
LATE_REAL_S = 4.0
POLL_REAL_S = 0.25


class Events:
    """Those of one namespace. ``age_s`` tells how old a pod is by its name; None for others."""

    def __init__(
        self,
        cluster: ports.Cluster,
        namespace: str,
        clock: ports.Clock,
        age_s: Callable[[str], float | None],
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._clock = clock
        self._age_s = age_s
        self._seen: dict[str, list[tuple[float, int]]] = {}  # by event name

    async def watch(self) -> None:
        """Note when each event comes, and comes again."""
        async for event in self._cluster.watch(ports.EVENTS, self._namespace):
            item = event.object
            age_s = self._age_s((item.get("involvedObject") or {}).get("name", ""))
            if event.change is not ports.Change.SYNCED and age_s is not None:
                seen = self._seen.setdefault(item["metadata"]["name"], [])
                seen.append((age_s, int(item.get("count") or 1)))

    async def read(
        self, pod: str, enough: Callable[[Sequence[recording.Event]], bool]
    ) -> Sequence[recording.Event]:
        """Those that came; until there are ``enough``, for a while."""
        chosen = f"involvedObject.name={pod}"
        give_up_s = self._clock.real_s() + LATE_REAL_S
        while True:
            found, _ = await self._cluster.list(
                ports.EVENTS, self._namespace, field_selector=chosen
            )
            events = [self._event(item) for item in found]
            if enough(events) or self._clock.real_s() > give_up_s:
                return events
            await self._clock.sleep_real(POLL_REAL_S)

    def _event(self, item: Mapping[str, Any]) -> recording.Event:
        return recording.Event(
            type=item["type"],
            reason=item["reason"],
            message=item["message"],
            count=item.get("count") or 1,
            source=item.get("source") or {},
            field_path=item["involvedObject"].get("fieldPath"),
            seen=self._seen.get(item["metadata"]["name"], ()),
        )
