"""One point as a worker gets it, and what it gives back. All of it can be sent to a process."""

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modelserve import errors
from servelab.sim import outcome, running, scenario
from servelab.workload import tracefile


@dataclass(frozen=True, slots=True)
class Beside:
    """Opens traces by name: a file beside the scenario's (also compressed), or the package's."""

    folder: str
    scenario_name: str

    def __call__(self, name: str) -> Iterable[str]:
        """The lines, one after the other. Raises InputError, also while they are read."""
        path = self.path(name)
        return tracefile.packaged(name) if path is None else _lines(path, self.scenario_name)

    def path(self, name: str) -> Path | None:
        """Where a trace lies; None for one of the package."""
        path = Path(self.folder) / name
        shipped = name in tracefile.PACKAGED or name in tracefile.TABLES
        return None if shipped and not path.is_file() else path


def _lines(path: Path, scenario_name: str) -> Iterator[str]:
    number = 1
    try:
        # Line by line, so that the place of what is no text is known.
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            for line in lines:
                yield line.decode()
                number += 1
    except FileNotFoundError as error:
        known = ", ".join(tracefile.PACKAGED)
        raise errors.InputError(
            f"{scenario_name} names the trace {path}, which is not there; with the package come "
            f"{known}"
        ) from error
    except UnicodeDecodeError as error:
        raise errors.InputError(f"{path}, line {number}: cannot be read: it is no UTF-8") from error
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise errors.InputError(f"the trace {path} cannot be read: {why}") from error


@dataclass(frozen=True, slots=True)
class Task:
    """Run this. ``content`` is a scenario as data that was validated before."""

    content: Mapping[str, Any]
    policy: str
    seed: int
    lines: Beside

    def run(self) -> "Done":
        """The outcome, or the sentence of what went wrong. Errors of ours do not travel whole."""
        try:
            given = scenario.Scenario.model_validate(self.content, extra="forbid")
            run = running.run(given, self.policy, self.lines, seed=self.seed)
            return Done(outcome.of(run, given).to_json())
        except errors.ModelServeError as error:
            return Done(None, str(error))


@dataclass(frozen=True, slots=True)
class Done:
    """The figures of a run by name, or why there are none."""

    figures: Mapping[str, Any] | None
    failure: str = ""


def run(task: Task) -> Done:
    """For pools, which take a function."""
    return task.run()
