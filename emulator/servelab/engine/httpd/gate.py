"""Whether a connection is read: not while its requests wait, nor while its body has no room."""

import asyncio
from enum import IntFlag

from servelab.engine.httpd.limits import BodyBudget, Reader


class Hold(IntFlag):
    """Why nothing is read at the moment."""

    NONE = 0
    PIPELINE = 1  # requests wait for the one under way
    ROOM = 2  # other bodies fill the budget


class Gate:
    """Of one connection, with what the body that comes in has of the budget.

    ``reader`` is told when there is room.
    """

    def __init__(self, transport: asyncio.Transport, budget: BodyBudget) -> None:
        self.reserved_bytes = 0
        self.waits_bytes = 0  # asked for, and not given yet
        self._transport = transport
        self._budget = budget
        self._holds = Hold.NONE

    @property
    def shut(self) -> bool:
        """Whether nothing is read."""
        return bool(self._holds)

    @property
    def asked(self) -> bool:
        """Whether the body has, or waits for, a part of the budget."""
        return self.reserved_bytes > 0 or self.waits_bytes > 0

    def hold(self, why: Hold) -> None:
        """Do not read until it is lifted."""
        if not self._holds and not self._transport.is_closing():
            self._transport.pause_reading()
        self._holds |= why

    def lift(self, why: Hold) -> None:
        """Read again, if nothing else is in the way."""
        if not self._holds & why:
            return
        self._holds &= ~why
        if not self._holds and not self._transport.is_closing():
            self._transport.resume_reading()

    def reserve(self, reader: Reader, n_bytes: int) -> None:
        """Take so much of the budget, or wait for it and read nothing until then."""
        if self._budget.reserve(reader, n_bytes):
            self.reserved_bytes += n_bytes
        else:
            self.waits_bytes = n_bytes
            self.hold(Hold.ROOM)

    def room_given(self) -> None:
        """What was waited for is there."""
        self.reserved_bytes += self.waits_bytes
        self.waits_bytes = 0
        self.lift(Hold.ROOM)

    def hand_over(self) -> int:
        """The reservation, in bytes: whoever gets it gives it back."""
        n_bytes, self.reserved_bytes = self.reserved_bytes, 0
        return n_bytes

    def release(self, reader: Reader) -> None:
        """Give back what is reserved, and wait for nothing."""
        if self.reserved_bytes:
            self._budget.release(self.hand_over())
        if self.waits_bytes:
            self.withdraw(reader)

    def withdraw(self, reader: Reader) -> None:
        """Wait for nothing."""
        self.waits_bytes = 0
        self._budget.withdraw(reader)
        self.lift(Hold.ROOM)
