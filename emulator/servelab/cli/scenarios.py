"""What ``simulate`` and ``compare`` share: finding a scenario and its traces."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path

import click

from modelserve import errors
from modelserve.decide import prediction
from servelab.cli import completing
from servelab.sim import checking, reading, scenario, traffic
from servelab.sweep import settings, task
from servelab.workload import servegen, tracefile


class Found:
    """A scenario and where its traces are looked for: beside its file, then in the package."""

    def __init__(self, name: str) -> None:
        path = Path(name)
        folder, text = Path(), ""
        if path.suffix in (".yaml", ".yml") or path.is_file() or len(path.parts) > 1:
            folder, text = path.parent, _read(path)
        else:
            text = reading.packaged_text(name)
        self.name = name
        self.document = reading.load(text, name)
        self.scenario = reading.validate(self.document)
        self.lines = task.Beside(str(folder), name)
        self._instead: Path | None = None

    def with_trace(self, trace: Path) -> None:
        """Let the scenario's one model be called as this file says. Raises InputError."""
        models = self.scenario.models
        if len(models) > 1:
            raise errors.InputError(
                f"{self.name} has {len(models)} models, and --trace cannot say whose the trace is: "
                "name it in the scenario"
            )
        named = [{"trace": str(trace.absolute())}]
        content = settings.applied(self.document.content, ("models", 0, "traffic"), named)
        self.document = dataclasses.replace(self.document, content=content)
        self.scenario = reading.validate(self.document)
        self._instead = trace

    def check_requests(self, count: int) -> None:
        """Raises InputError if the file that stands for the scenario's traffic held none."""
        if self._instead is not None and not count:
            raise errors.InputError(f"{self._instead} holds no request")

    def check_traces(self) -> None:
        """Raises InputError, with the line, for a trace, table or client that is not there.

        Also for a trace that is too short for the blocks to be drawn from it.
        """
        for number, model in enumerate(self.scenario.models):
            for stream, one in enumerate(model.traffic):
                place = ("models", number, "traffic", stream)
                if one.trace is not None:
                    self._check_file(one.trace, (*place, "trace"), tracefile.PACKAGED)
                    longest = prediction.max_model_tokens(model.spec)
                    self._check_blocks(one.trace, one, longest, (*place, "resampleSeconds"))
                if one.serve_gen is not None:
                    fields = ["rates"] if traffic.has_lengths(one) else ["rates", "lengths"]
                    for field in fields:
                        self._check_client(one.serve_gen, field, (*place, "serveGen"))

    def _check_blocks(
        self, name: str, one: scenario.Traffic, longest: int, place: checking.Place
    ) -> None:
        if self._is_read_once(name):
            return
        if said := traffic.obstacle(one, longest, self.lines):
            raise errors.InputError(reading.sentence_at(self.document, place, said))

    def _check_client(self, said: scenario.ServeGen, field: str, place: checking.Place) -> None:
        name = getattr(said, field)
        self._check_file(name, (*place, field), tracefile.TABLES)
        if self._is_read_once(name):
            return
        try:
            servegen.check(self.lines(name), said.client, name)
        except errors.UnknownName as error:
            told = reading.sentence_at(self.document, (*place, "client"), f"in {name}: {error}")
            raise errors.InputError(told) from error

    def _is_read_once(self, name: str) -> bool:
        """Whether it is a pipe."""
        path = self.lines.path(name)
        return path is not None and not path.is_file()

    def _check_file(self, name: str, place: checking.Place, packaged: Iterable[str]) -> None:
        path = self.lines.path(name)
        if path is None or (path.exists() and not path.is_dir()):
            return
        why = f"{path} is a directory" if path.is_dir() else f"there is no {path}"
        said = f"{why}; with the package come {', '.join(packaged)}"
        raise errors.InputError(reading.sentence_at(self.document, place, said))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise errors.InputError(f"{path} cannot be read as a scenario: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise errors.InputError(f"{path} cannot be read as a scenario: it is no UTF-8") from error


SCENARIO = click.argument("scenario", shell_complete=completing.SCENARIO)
SEED = click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), help="Default: the scenario's own."
)
TRACE = click.option(
    "--trace",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A request trace to use instead of the scenario's traffic: CSV or JSON lines.",
)
