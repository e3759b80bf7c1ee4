"""``servelab bench``: measure and report."""

import datetime
import json
import signal
from pathlib import Path

import click

from servelab.bench import figure, registry


@click.command(epilog=f"NAME: {', '.join(registry.BENCHES)}, {registry.ALL}.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per bench.")
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
    help="Watch the memory of the bench `engine` under load so long.",
)
@click.option(
    "--write",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write a Markdown page with machine, versions and date.",
)
def bench(
    name: str | None,
    as_json: bool,
    samples: int | None,
    duration: float | None,
    soak: float | None,
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
    given = {"duration_s": duration, "soak_min": soak}
    options = {key: value for key, value in given.items() if value is not None}
    if options and name != "engine":
        raise click.UsageError("--duration and --soak are options of the bench `engine` alone")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    chosen = tuple(registry.BENCHES) if name == registry.ALL else (str(name),)
    reports = []
    for one in chosen:
        report = registry.run(one, samples, lambda text: click.echo(text, err=True), options)
        reports.append(report)
        click.echo(json.dumps(report.to_json()) if as_json else figure.as_text(report))
    if write is not None:
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        write.write_text(figure.as_markdown(reports, date))
