"""What ``simulate`` and ``compare`` share: finding a scenario, its traces, and showing progress."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import click
from rich import console, progress

from modelserve import errors
from servelab.sim import reading, scenario
from servelab.workload import tracefile

# A bar is worth showing for runs that take longer than this.
PATIENCE_REAL_S = 2.0


class Found:
    """A scenario and where its traces are looked for: beside its file, then in the package."""

    def __init__(self, name: str) -> None:
        path = Path(name)
        if path.suffix in (".yaml", ".yml") or path.is_file():
            self.name, self._folder, text = name, path.parent, _read(path)
        else:
            self.name, self._folder, text = name, Path(), reading.packaged_text(name)
        self.scenario = reading.parse(text, self.name)

    def with_trace(self, trace: Path) -> None:
        """Let the scenario's one model be called as this file says. Raises InputError."""
        models = self.scenario.models
        if len(models) > 1:
            raise errors.InputError(
                f"{self.name} has {len(models)} models, and --trace cannot say whose the trace is: "
                "name it in the scenario"
            )
        traffic = [scenario.Traffic(trace=str(trace.absolute()))]
        model = models[0].model_copy(update={"traffic": traffic})
        self.scenario = self.scenario.model_copy(update={"models": [model]})

    def lines(self, name: str) -> Iterable[str]:
        """The lines of a trace, one after the other. Raises InputError."""
        path = self._folder / name
        if not path.is_file() and name in tracefile.PACKAGED:
            return tracefile.packaged(name)
        return _lines(path, self.name)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise errors.InputError(f"{path} cannot be read as a scenario: {error}") from error


def _lines(path: Path, scenario_name: str) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            yield from lines
    except FileNotFoundError as error:
        known = ", ".join(tracefile.PACKAGED)
        raise errors.InputError(
            f"{scenario_name} names the trace {path}, which is not there; with the package come "
            f"{known}"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise errors.InputError(f"the trace {path} cannot be read: {error}") from error


class Bar:
    """A line on a terminal's stderr with the simulated time, once a run takes its time."""

    def __init__(self) -> None:
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TextColumn("{task.fields[at]} simulated"),
            progress.TimeElapsedColumn(),
            console=console.Console(stderr=True),
            transient=True,
        )
        self._shown = False
        self._began_real_s = time.monotonic()
        self._task: progress.TaskID | None = None

    def tell(self, what: str, at_s: float) -> None:
        """This far."""
        if not self._bar.console.is_terminal:
            return
        if not self._shown:
            if time.monotonic() - self._began_real_s < PATIENCE_REAL_S:
                return
            self._shown = True
            self._bar.start()
        at = f"{max(0.0, at_s) / 3600:.1f} h"
        if self._task is None:
            self._task = self._bar.add_task(what, total=None, at=at)
        self._bar.update(self._task, description=what, at=at)

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


SCENARIO = click.argument("scenario")
SEED = click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), help="Default: the scenario's own."
)
TRACE = click.option(
    "--trace",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A request trace to use instead of the scenario's traffic: CSV or JSON lines.",
)
