"""``servelab compare``: one scenario under several policies, on the same draws."""

import json
import signal
from pathlib import Path

import click

from modelserve import errors
from servelab.cli import outcomes, scenarios
from servelab.report import paper
from servelab.sim import comparison, running

OUT = paper.sheet()


@click.command()
@scenarios.SCENARIO
@scenarios.TRACE
@click.option(
    "--policies",
    default=",".join(comparison.DEFAULT),
    show_default=True,
    metavar="A,B,…",
    help=f"Of {', '.join(running.policies())}.",
)
@scenarios.SEED
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per policy, a line each."
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write a page with the table and charts; it needs no network.",
)
def compare(
    scenario: str,
    trace: Path | None,
    policies: str,
    seed: int | None,
    as_json: bool,
    html: Path | None,
) -> None:
    """Run SCENARIO under each of the policies and print what each came to, side by side.

    Requests, lengths and the jitter of cold starts are the same for all of them.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    names = [name.strip() for name in policies.split(",") if name.strip()]
    if not names:
        raise errors.InputError("--policies names none: give some, with commas between them")
    if html is not None and not html.absolute().parent.is_dir():
        raise errors.InputError(f"{html.parent} is no directory: make it, or name another file")
    for name in names:
        running.check_policy(name)
    found = scenarios.Found(scenario)
    if trace is not None:
        found.with_trace(trace)
    with scenarios.Bar() as bar:
        runs = comparison.compare(found.scenario, names, found.lines, seed=seed, progress=bar.tell)
        compared = list(runs)
    came_to = [each for _, each in compared]
    if html is not None:
        page = outcomes.write_page(found.name, found.scenario.description, compared)
        html.write_text(page, encoding="utf-8")
    if as_json:
        for each in came_to:
            click.echo(json.dumps({"scenario": found.name, **each.to_json()}))
        return
    first = came_to[0]
    OUT.print(
        f"{found.name}, seed {first.seed}: {first.requests} requests in "
        f"{first.length_s / 3600:.2f} simulated hours"
    )
    OUT.print(outcomes.grid(came_to))
