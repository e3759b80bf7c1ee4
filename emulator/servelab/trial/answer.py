"""One streamed answer as it comes in: when, how many events, and whether it was the whole of it.

Events are counted by bytes. A client that parses each of them would take the processor time that
the engines and the gateway need, and measure that.
"""

import re
from dataclasses import dataclass

MARK = b"data: "
DONE = b"data: [DONE]\n\n"
# The last events: usage and [DONE], or an error; kept to be read at the end.
TAIL_BYTES = 4096
# Events of a whole answer that carry no token of it: the role's, usage, [DONE].
OTHER_EVENTS = 3

_USAGE = re.compile(rb'"completion_tokens":\s*(\d+)')
_MESSAGE = re.compile(rb'"message":\s*"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one request; times are monotonic real seconds.

    ``first_real_s`` is that of the first event (comments that keep a held stream alive are none),
    0 if there was none. ``problem`` is empty if the answer was whole.
    """

    at_s: float
    sent_real_s: float
    first_real_s: float
    end_real_s: float
    status: int
    tokens: int
    problem: str = ""

    @property
    def wait_real_s(self) -> float:
        """Sent to first event, in real seconds."""
        return self.first_real_s - self.sent_real_s


class Incoming:
    """Takes the content of a streamed answer and judges it at the end."""

    __slots__ = ("_tail", "events", "first_real_s", "status")

    def __init__(self) -> None:
        self.status = 0
        self.events = 0
        self.first_real_s = 0.0
        self._tail = b""

    def feed(self, content: bytes, now_real_s: float) -> None:
        """The next bytes of the body."""
        # A mark may be cut by the end of a piece: its first five bytes wait in the tail.
        self.events += (self._tail[1 - len(MARK) :] + content).count(MARK)
        if self.events and not self.first_real_s:
            self.first_real_s = now_real_s
        self._tail = (self._tail + content)[-TAIL_BYTES:]

    @property
    def tokens(self) -> int:
        """Completion tokens by the answer's own account; 0 if it gave none."""
        found = _USAGE.findall(self._tail)
        return int(found[-1]) if found else 0

    def problem(self, asked_tokens: int) -> str:
        """What is wrong with the answer, in a sentence; empty if it is whole."""
        if self.status != 200:
            return f"status {self.status}: {self._said()}"
        if not self._tail.endswith(DONE):
            return f"the stream ended without [DONE]: {self._said()}"
        if self.tokens != asked_tokens:
            return f"{self.tokens} tokens where {asked_tokens} were asked for"
        if self.events - OTHER_EVENTS != asked_tokens:
            return f"{self.events - OTHER_EVENTS} events with a token for {asked_tokens} tokens"
        return ""

    def _said(self) -> str:
        found = _MESSAGE.findall(self._tail)
        text = found[-1] if found else self._tail[-200:]
        return text.decode("utf-8", "replace").strip() or "it said nothing"
