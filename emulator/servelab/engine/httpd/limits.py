"""How much one client, and all of them together, may take of a server."""

from collections import deque
from dataclasses import dataclass
from typing import Protocol

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds in bytes and real seconds. Those with no source are choices: uvicorn has none there.

    A client whose stream has ``unread_bytes`` waiting in this process is cut off; where all
    together have ``all_unread_bytes``, those with the most are. While a body comes, at least
    ``progress_bytes``, or all that is left of it, must come in every ``body_s``.
    """

    head_bytes: int = 256 * 1024
    headers: int = 1000
    body_bytes: int = 32 * MIB
    bodies_bytes: int = 128 * MIB  # reserved by all bodies that are coming in
    free_body_bytes: int = 64 * 1024  # smaller bodies need no reservation
    inline_body_bytes: int = 64 * 1024  # larger ones are handled aside, where the route allows it
    unread_bytes: int = 4 * MIB
    all_unread_bytes: int = 256 * MIB
    discarded_bytes: int = 256 * MIB  # of a refused request, so that the client reads its answer
    discard_s: float = 10.0
    keep_alive_s: float = 5.0  # uvicorn's timeout_keep_alive
    head_s: float = 60.0
    body_s: float = 60.0
    progress_bytes: int = 64 * 1024
    flush_s: float = 60.0  # without progress of an answer that is complete


class Reader(Protocol):
    """Who waits for room."""

    def room_given(self) -> None:
        """The reservation that was asked for is made."""


class BodyBudget:
    """Room for bodies that are coming in. First come, first served; all of a body or nothing.

    A body is reserved whole before it is read: two half-read ones could wait for each other.
    """

    def __init__(self, room_bytes: int) -> None:
        self._room_bytes = room_bytes
        self._waiting: deque[tuple[Reader, int]] = deque()

    @property
    def room_bytes(self) -> int:
        """What is free."""
        return self._room_bytes

    def reserve(self, reader: Reader, n_bytes: int) -> bool:
        """Whether there is room at once; if not, the reader is told when there is."""
        if self._waiting or n_bytes > self._room_bytes:
            self._waiting.append((reader, n_bytes))
            return False
        self._room_bytes -= n_bytes
        return True

    def withdraw(self, reader: Reader) -> None:
        """A reader waits no more."""
        self._waiting = deque(each for each in self._waiting if each[0] is not reader)
        self._give()

    def release(self, n_bytes: int) -> None:
        """A reservation is over."""
        self._room_bytes += n_bytes
        self._give()

    def _give(self) -> None:
        while self._waiting and self._waiting[0][1] <= self._room_bytes:
            reader, n_bytes = self._waiting.popleft()
            self._room_bytes -= n_bytes
            reader.room_given()
