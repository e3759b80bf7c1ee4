"""Logs of containers, kept in memory, and read as a kubelet's log endpoint does."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

# A runtime keeps 10 MiB a container before it rotates; so many lines come to less.
MOST_LINES = 20_000


@dataclass(frozen=True, slots=True)
class Line:
    """One line, at Unix seconds."""

    at_s: float
    text: str

    def render(self, *, timestamps: bool) -> str:
        return f"{_nanoseconds(self.at_s)} {self.text}\n" if timestamps else f"{self.text}\n"


@dataclass(frozen=True, slots=True)
class Query:
    """What a reader asks for. ``since_s`` is Unix seconds; None leaves a limit out."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since_s: float | None = None
    limit_bytes: int | None = None
    stream: str = "All"


@dataclass(slots=True)
class Journal:
    """The log of one container: of its run now, and of the one before."""

    lines: deque[Line] = field(default_factory=lambda: deque(maxlen=MOST_LINES))
    previous: deque[Line] | None = None
    closed: bool = False
    _readers: list[Callable[[Line | None], None]] = field(default_factory=list)

    @property
    def followers(self) -> int:
        """How many follow it."""
        return len(self._readers)

    def append(self, at_s: float, text: str) -> None:
        """Add a line and hand it to whoever follows."""
        line = Line(at_s, text)
        self.lines.append(line)
        for reader in tuple(self._readers):
            reader(line)

    def rotate(self) -> None:
        """The container starts anew."""
        self.previous, self.lines = self.lines, deque(maxlen=MOST_LINES)
        self.end()
        self.closed = False

    def end(self) -> None:
        """The container has ended: followers have seen all (they are told None)."""
        self.closed = True
        for reader in tuple(self._readers):
            reader(None)

    def follow(self, reader: Callable[[Line | None], None]) -> Callable[[], None]:
        """Call ``reader`` with each new line; returns what ends that."""
        self._readers.append(reader)
        return lambda: self._readers.remove(reader) if reader in self._readers else None


def select(lines: Iterable[Line], query: Query) -> list[Line]:
    """The lines a query asks for, in order: the newest ``tail_lines`` of those since then."""
    found = [line for line in lines if query.since_s is None or line.at_s >= query.since_s]
    if query.tail_lines is None:
        return found
    return found[-query.tail_lines :] if query.tail_lines else []


def cut(chunks: Iterable[bytes], limit_bytes: int | None) -> Iterator[bytes]:
    """Bytes up to the limit, the last one cut short."""
    left = limit_bytes
    for chunk in chunks:
        if left is None:
            yield chunk
            continue
        if left <= 0:
            return
        yield chunk[:left]
        left -= len(chunk)


def _nanoseconds(at_s: float) -> str:
    whole = int(at_s)
    text = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{int((at_s - whole) * 1e9):09d}Z"
