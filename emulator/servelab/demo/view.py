"""The story as it happens: a live panel in a terminal, lines of text anywhere else."""

import time
from typing import Protocol, TextIO

from rich import console as rich_console
from rich import live, panel, table
from rich.text import Text

from servelab.demo.scene import Scene

LINE_EVERY_REAL_S = 5.0
FRAMES_PER_REAL_S = 4


class View(Protocol):
    """Somebody who is told the story."""

    def say(self, sentence: str) -> None:
        """Tell one thing that happened."""

    def show(self, scene: Scene) -> None:
        """Show the present moment."""

    def close(self) -> None:
        """The story is over; may be called twice."""


class Lines:
    """Plain lines: each new act and decision, and every few seconds where things stand."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last_real_s = float("-inf")
        self._act = ""
        self._decision = ""

    def say(self, sentence: str) -> None:
        """Print it."""
        print(sentence, file=self._stream, flush=True)

    def show(self, scene: Scene) -> None:
        """Print what is new; a line about the rest if the last one is old."""
        now_real_s = time.monotonic()
        if scene.act != self._act:
            self._act = scene.act
            self._last_real_s = float("-inf")
            self.say(f"{_clock(scene.elapsed_s)}  {scene.act}")
        if scene.decision != self._decision:
            self._decision = scene.decision
            self.say(f"{_clock(scene.elapsed_s)}  decided: {scene.decision}")
        if now_real_s - self._last_real_s >= LINE_EVERY_REAL_S:
            self._last_real_s = now_real_s
            waiting = f"; waits for {scene.waiting_for}" if scene.waiting_for else ""
            self.say(f"{_clock(scene.elapsed_s)}  {replicas(scene)}; {requests(scene)}{waiting}")

    def close(self) -> None:
        """Nothing is open."""


class Panel:
    """A live panel that is drawn anew in place."""

    def __init__(self, stream: TextIO) -> None:
        self._console = rich_console.Console(file=stream)
        self._live = live.Live(
            console=self._console, refresh_per_second=FRAMES_PER_REAL_S, transient=True
        )
        self._act = ""
        self._open = False

    def say(self, sentence: str) -> None:
        """Print it above the panel."""
        self._console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def show(self, scene: Scene) -> None:
        """Draw the moment."""
        if not self._open:
            self._live.start()
            self._open = True
        if scene.act != self._act:
            self._act = scene.act
            self.say(f"{_clock(scene.elapsed_s)}  {scene.act}")
        self._live.update(draw(scene))

    def close(self) -> None:
        """Take the panel away."""
        if self._open:
            self._live.stop()
            self._open = False


def for_stream(stream: TextIO) -> Lines | Panel:
    """The view that suits ``stream``."""
    return Panel(stream) if stream.isatty() else Lines(stream)


def replicas(scene: Scene) -> str:
    """Replicas in words."""
    leaving = f", {scene.leaving} leaving" if scene.leaving else ""
    return (
        f"replicas: {scene.desired} wanted, {scene.ready} ready, {scene.starting} starting{leaving}"
    )


def requests(scene: Scene) -> str:
    """Requests in words."""
    failed = f", {scene.errors} failed" if scene.errors else ""
    open_now = scene.sent - scene.done
    return f"requests: {open_now} open ({scene.held} held), {scene.done} answered{failed}"


def draw(scene: Scene) -> panel.Panel:
    """One moment as a panel."""
    grid = table.Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column()
    rows = {
        "now": scene.act,
        "replicas": f"{scene.ready} ready, {scene.starting} starting, {scene.desired} wanted"
        + (f", {scene.leaving} leaving" if scene.leaving else ""),
        "demand": f"{scene.held} held, {scene.running} running, {scene.waiting} waiting in engines",
        "requests": f"{scene.sent - scene.done} open, {scene.done} answered, {scene.errors} failed",
        "waits for": scene.waiting_for or "-",
        "decided": scene.decision or "-",
    }
    for title, text in rows.items():
        grid.add_row(title, Text(text))
    heading = Text(f"{_clock(scene.elapsed_s).strip()} emulated")
    return panel.Panel(grid, title=heading, title_align="left")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes:3d}:{rest:02d}"
