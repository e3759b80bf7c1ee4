"""``servelab policy-check``: our reading of Knative's and Kubernetes' rules against recordings."""

import dataclasses
import json
from pathlib import Path

import click
import pydantic

from modelserve.cli import options
from servelab.policies import recording, replay


@click.command("policy-check")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@options.printed(plain="text")
def policy_check(file: Path, as_json: bool) -> None:
    """Replay what Knative's or Kubernetes' autoscaler decided, from the demand alone, and compare.

    Exits with 1 if a desired count differs, 2 if FILE is no recording.
    """
    try:
        verdict = replay.compare(recording.RECORDING.validate_json(file.read_bytes()))
    except pydantic.ValidationError as error:
        raise click.UsageError(f"{file} is no recording: {recording.fault(error)}") from error
    except OSError as error:
        raise click.UsageError(f"{file} cannot be read: {error.strerror}") from error
    if not verdict.ticks:
        raise click.UsageError(f"{file} is no recording: it tells of no decision")
    click.echo(json.dumps(dataclasses.asdict(verdict)) if as_json else as_text(verdict))
    if verdict.equal < verdict.ticks:
        raise SystemExit(1)


def as_text(verdict: replay.Verdict) -> str:
    """The verdict in words, a line for each case that differs."""
    lines = [f"{verdict.equal} of {verdict.ticks} ticks in {verdict.cases} cases are equal"]
    for each in verdict.first_differences:
        lines.append(f"{each.case}, at {each.t} s: real {each.real}, ours {each.ours}")
    return "\n".join(lines)
