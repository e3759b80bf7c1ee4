"""What a long set-up tells its user: sentences, and how far the present step has come.

A terminal gets a bar, anything else a plain line at most every 15 seconds.
"""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Protocol, TextIO

from rich import console as rich_console
from rich import progress as rich_progress

LINE_EVERY_REAL_S = 15.0


class Reporter(Protocol):
    """Somebody who listens to a set-up."""

    def say(self, sentence: str) -> None:
        """Tell one thing that happened or is about to."""

    def progress(self, title: str, fraction: float, remaining_s: float | None) -> None:
        """Tell how much of ``title`` is done (0 to 1), and what is left by estimate (real s)."""

    def finish(self, title: str) -> None:
        """Tell that ``title`` is over."""


class Silent:
    """Nobody listens."""

    def say(self, sentence: str) -> None:
        """Drop it."""

    def progress(self, title: str, fraction: float, remaining_s: float | None) -> None:
        """Drop it."""

    def finish(self, title: str) -> None:
        """Drop it."""


class Plain:
    """Lines of text, for logs and pipes."""

    def __init__(self, stream: TextIO, every_real_s: float = LINE_EVERY_REAL_S) -> None:
        self._stream = stream
        self._every_real_s = every_real_s
        self._last_real_s = float("-inf")

    def say(self, sentence: str) -> None:
        """Print it at once."""
        print(sentence, file=self._stream, flush=True)

    def progress(self, title: str, fraction: float, remaining_s: float | None) -> None:
        """Print a line, unless the last one is recent."""
        now_real_s = time.monotonic()
        if now_real_s - self._last_real_s < self._every_real_s:
            return
        self._last_real_s = now_real_s
        self.say(f"{title}: {fraction:4.0%}{_left(remaining_s)}")

    def finish(self, title: str) -> None:
        """Print the end."""
        self._last_real_s = float("-inf")
        self.say(f"{title}: done")


class Bar:
    """A live bar in a terminal, which stands only while a step reports progress."""

    def __init__(self, stream: TextIO) -> None:
        self._console = rich_console.Console(file=stream)
        self._bar: rich_progress.Progress | None = None
        self._task = rich_progress.TaskID(0)

    def say(self, sentence: str) -> None:
        """Print it, above the bar if there is one."""
        self._console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def progress(self, title: str, fraction: float, remaining_s: float | None) -> None:
        """Move the bar."""
        if self._bar is None:
            self._bar = rich_progress.Progress(
                rich_progress.TextColumn("{task.description}"),
                rich_progress.BarColumn(),
                rich_progress.TextColumn("{task.percentage:>3.0f}%{task.fields[left]}"),
                rich_progress.TimeElapsedColumn(),
                console=self._console,
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(title, total=1.0, left="")
        self._bar.update(self._task, description=title, completed=fraction, left=_left(remaining_s))

    def finish(self, title: str) -> None:
        """Take the bar away."""
        self.close()
        self.say(f"{title}: done")

    def close(self) -> None:
        """Take a bar away that an error left standing."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def for_stream(stream: TextIO | None = None) -> Plain | Bar:
    """The reporter that suits ``stream`` (standard error if not given)."""
    chosen = stream or sys.stderr
    return Bar(chosen) if chosen.isatty() else Plain(chosen)


@contextlib.contextmanager
def closing(reporter: Plain | Bar) -> Iterator[Plain | Bar]:
    """Leave no bar behind, whatever happens in the block."""
    try:
        yield reporter
    finally:
        if isinstance(reporter, Bar):
            reporter.close()


def _left(remaining_s: float | None) -> str:
    if remaining_s is None:
        return ""
    if remaining_s < 90:
        return f", about {max(remaining_s, 1):.0f} s left"
    return f", about {remaining_s / 60:.0f} min left"
