"""``servelab bench``: measure and report."""

import datetime
import json
import signal
from pathlib import Path

import click

from modelserve.cli import options
from servelab.bench import figure, registry
from servelab.cli import completing


@click.command(epilog=f"NAME: {', '.join(registry.BENCHES)}, {registry.ALL}.")
@click.argument(
    "name",
    required=False,
    shell_complete=completing.among(lambda: (*registry.BENCHES, registry.ALL)),
)
@options.printed("JSON: one object per bench, a line each.", plain="text")
@click.option(
    "--samples", type=click.IntRange(min=1, max=100_000), help="Default: what the bench chooses."
)
@click.option(
    "--duration",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help="Of each load of the bench `engine`.",
)
@click.option(
    "--soak",
    type=click.FloatRange(min=0.1),
    metavar="MINUTES",
    help="How long memory is watched: of an engine under load  [default: 0.5], or of the "
    "emulator of `nodes` while pods come and go, plain ones and then engines', each after eleven "
    "minutes  [default: 20 and 12 rounds].",
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0.2),
    help="How long the bench `nodes` watches 1,000 nodes at rest.  [default: 1]",
)
@click.option(
    "--full",
    is_flag=True,
    help="Let the bench `simulate` run a fleet's whole day too: some ten minutes.",
)
@click.option(
    "--write",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Renew this bench's section of a Markdown page, with machine, versions and date.",
)
def bench(
    name: str | None,
    as_json: bool,
    samples: int | None,
    duration: float | None,
    soak: float | None,
    minutes: float | None,
    full: bool,
    write: Path | None,
) -> None:
    """Measure one side of the system, or `all`, and print the figures beside their goals.

    A bench reports; it does not fail because a goal was missed.
    """
    if name != registry.ALL and name not in registry.BENCHES:
        said = "name one" if name is None else f"there is no bench {name!r}"
        raise click.UsageError(f"{said}; there are these, and `all`:\n{registry.listing()}")
    if write is not None and not write.absolute().parent.is_dir():
        raise click.UsageError(f"{write.parent} is no directory: make it, or name another file")
    settings = _own(name, duration_s=duration, soak_min=soak, minutes=minutes)
    if full and name not in ("simulate", registry.ALL):
        raise click.UsageError("--full is an option of the bench `simulate` alone")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    chosen = tuple(registry.BENCHES) if name == registry.ALL else (str(name),)
    for one in chosen:
        own = {"full": True} if full and one == "simulate" else settings
        report = registry.run(one, samples, lambda text: click.echo(text, err=True), own)
        click.echo(json.dumps(report.to_json()) if as_json else figure.as_text(report))
        if write is not None:
            _renew(write, report)


def _renew(page: Path, report: figure.Report) -> None:
    """Write its section, at once: what ends a later bench loses nothing of this one."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    before = page.read_text() if page.exists() else ""
    page.write_text(figure.as_markdown([report], date, before))


def _own(name: str | None, **given: float | None) -> dict[str, float]:
    """The options of one bench alone, as far as they were given. UsageError for another's."""
    settings = {key: value for key, value in given.items() if value is not None}
    for owners, own, said in (
        (("engine",), "duration_s", "--duration"),
        (("engine", "nodes"), "soak_min", "--soak"),
        (("nodes",), "minutes", "--minutes"),
    ):
        if own in settings and name not in owners:
            named = " and ".join(f"`{owner}`" for owner in owners)
            raise click.UsageError(f"{said} is an option of the bench {named} alone")
    return settings
