"""``servelab scheduler-check``: our core against a recording of vLLM's scheduler."""

import dataclasses
import json
from pathlib import Path

import click
import pydantic

from modelserve.cli import options
from modelserve.errors import InputError
from servelab.engine.checks import scheduling


@click.command("scheduler-check")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@options.printed(plain="text")
def scheduler_check(file: Path, as_json: bool) -> None:
    """Replay a recording of vLLM's scheduler through the engine core and compare each step.

    Exits with 1 if a step differs, 2 if FILE is no recording.
    """
    try:
        cases = scheduling.RECORDING.validate_json(file.read_bytes())
        verdict = scheduling.compare(cases)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        where = f" at {place}" if place else ""
        raise click.UsageError(f"{file} is no recording: {first['msg']}{where}") from error
    except InputError as error:
        raise click.UsageError(f"{file} cannot be replayed: {error}") from error
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from error
    click.echo(json.dumps(dataclasses.asdict(verdict)) if as_json else as_text(verdict))
    if verdict.equal < verdict.steps:
        raise SystemExit(1)


def as_text(verdict: scheduling.Verdict) -> str:
    """The verdict in words, a line for each case that differs."""
    lines = [f"{verdict.equal} of {verdict.steps} steps in {verdict.cases} cases are equal"]
    for each in verdict.first_differences:
        lines.append(f"{each.case}, step {each.step}: real {each.real}, ours {each.ours}")
    return "\n".join(lines)
