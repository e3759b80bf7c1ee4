"""The line of held requests of one model: first come, first served."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(slots=True)
class Request:
    """One request from arrival to end. ``since_real_s``: start of its present wait or flight."""

    request_id: int
    sequence: int
    size_bytes: int
    since_real_s: float
    pod_uid: str = ""
    resets: int = 0


class Line:
    """Requests in order of arrival. Those that were sent and came back stand before all others:
    they arrived before anyone who still waits for the first time."""

    def __init__(self) -> None:
        self._first_time: dict[int, Request] = {}
        self._returned: dict[int, Request] = {}
        self.held_bytes = 0

    def __len__(self) -> int:
        return len(self._first_time) + len(self._returned)

    def __iter__(self) -> Iterator[Request]:
        yield from self._returned.values()
        yield from self._first_time.values()

    def join(self, request: Request) -> None:
        """Stand at the end."""
        self._first_time[request.request_id] = request
        self.held_bytes += request.size_bytes

    def rejoin(self, request: Request) -> None:
        """Take back the place that its arrival gave it."""
        back = [*self._returned.values(), request]
        self._returned = {r.request_id: r for r in sorted(back, key=lambda r: r.sequence)}
        self.held_bytes += request.size_bytes

    def pop(self) -> Request:
        """The first one leaves. Raises StopIteration when nobody is there."""
        request = next(iter(self))
        self.remove(request.request_id)
        return request

    def remove(self, request_id: int) -> Request | None:
        """This one leaves, wherever it stands; None if it is not there."""
        part = self._returned if request_id in self._returned else self._first_time
        request = part.pop(request_id, None)
        if request is not None:
            self.held_bytes -= request.size_bytes
        return request

    def clear(self) -> list[Request]:
        """All leave, in order."""
        everyone = list(self)
        self._first_time.clear()
        self._returned.clear()
        self.held_bytes = 0
        return everyone

    def oldest_since_real_s(self) -> float | None:
        """When the longest present wait began."""
        # Those in line for the first time began to wait in order; those that came back did not.
        first = next(iter(self._first_time.values()), None)
        since = [r.since_real_s for r in self._returned.values()]
        return min([*since, first.since_real_s] if first else since, default=None)

    def waiting_since(self, limit_real_s: float) -> list[Request]:
        """Those whose present wait began at ``limit_real_s`` or before."""
        over = [r for r in self._returned.values() if r.since_real_s <= limit_real_s]
        for request in self._first_time.values():
            if request.since_real_s > limit_real_s:
                break
            over.append(request)
        return over
