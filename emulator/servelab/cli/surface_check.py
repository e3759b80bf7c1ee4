"""``servelab surface-check``: recorded answers of a real engine against the mock engine's."""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from modelserve import errors
from modelserve.api.spec import EngineType
from modelserve.cli import options
from servelab.engine.checks import surface

SHOWN_DIFFERENCES = 20


@click.command("surface-check")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--engine",
    type=click.Choice([each.value for each in EngineType]),
    default=EngineType.VLLM.value,
    show_default=True,
    help="Whose answers they are.",
)
@click.option(
    "--option",
    "told",
    metavar="NAME=VALUE",
    multiple=True,
    help="What the engine was started with, e.g. front-end=kserve. Repeatable.",
)
@options.printed(plain="text")
def surface_check(file: Path, engine: str, told: Sequence[str], as_json: bool) -> None:
    """Put the recorded requests of FILE to a mock engine, and compare the answers.

    Exit status: 0 when all are equal, 1 when some are not, 2 when FILE cannot be used.
    """
    try:
        rows = surface.read(file)
    except errors.InputError as error:
        raise click.UsageError(str(error)) from error
    pairs = tuple((name, value) for name, _, value in (each.partition("=") for each in told))
    report = asyncio.run(surface.check(rows, EngineType(engine), pairs))
    click.echo(json.dumps(report.to_json()) if as_json else _text(report))
    sys.exit(0 if report.equal == report.requests else 1)


def _text(report: surface.Report) -> str:
    lines = [f"{report.equal} of {report.requests} answers are equal"]
    for each in report.differences[:SHOWN_DIFFERENCES]:
        real, ours = (json.dumps(value) for value in (each.real, each.ours))
        lines.append(f"{each.name}: {each.where}: real {real}, ours {ours}")
    more = len(report.differences) - SHOWN_DIFFERENCES
    return "\n".join([*lines, *([f"and {more} more differences"] if more > 0 else [])])
