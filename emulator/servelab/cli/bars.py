"""How far a command is that takes its time: a bar on a terminal, else a line now and then."""

import math
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import click
from rich import console, progress

# Worth telling for what takes longer than this.
PATIENCE_REAL_S = 2.0
# Between two lines where there is no terminal.
LINE_EVERY_REAL_S = 10.0


class Bar:
    """How far it is, or of how many, once a run takes its time."""

    def __init__(self, now_real_s: Callable[[], float] = time.monotonic) -> None:
        self._now_real_s = now_real_s
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TextColumn("{task.fields[at]}"),
            progress.TimeElapsedColumn(),
            console=console.Console(stderr=True),
            transient=True,
        )
        self._shown = False
        self._next_real_s = now_real_s() + PATIENCE_REAL_S
        self._task: progress.TaskID | None = None

    def tell(self, what: str, at_s: float) -> None:
        """Simulated seconds so far; infinite when nothing is left to do."""
        if at_s == math.inf:
            return
        self._show(what, f"{max(0.0, at_s) / 3600:.1f} h simulated", None, 0)

    def count(self, what: str, done: int, total: int) -> None:
        """So many of so many."""
        self._show(what, f"{done} of {total}", total, done)

    def _show(self, what: str, at: str, total: int | None, done: int) -> None:
        if not self._bar.console.is_terminal:
            self._line(f"{what}: {at}")
            return
        if not self._shown:
            # With a total there may be nothing to tell for long: show it at once.
            if total is None and self._now_real_s() < self._next_real_s:
                return
            self._shown = True
            self._bar.start()
        if self._task is None:
            self._task = self._bar.add_task(what, total=total, at=at)
        self._bar.update(self._task, description=what, at=at, total=total, completed=done)

    def _line(self, text: str) -> None:
        now_real_s = self._now_real_s()
        if now_real_s >= self._next_real_s:
            self._next_real_s = now_real_s + LINE_EVERY_REAL_S
            click.echo(text, err=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            self._bar.stop()
