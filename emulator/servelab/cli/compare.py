"""``servelab compare``: one scenario under several policies, on the same draws."""

import json
import signal
from pathlib import Path

import click
from click import core

from modelserve.cli import options
from servelab.cli import bars, compare_page, completing, outcomes, scenarios
from servelab.report import paper
from servelab.sim import comparison, running
from servelab.sweep import results

OUT = paper.sheet()


@click.command()
@scenarios.SCENARIO
@scenarios.TRACE
@click.option(
    "--policies",
    shell_complete=completing.POLICIES,
    default=",".join(comparison.DEFAULT),
    show_default=True,
    metavar="A,B,…",
    help=f"Of {', '.join(running.policies())}.",
)
@scenarios.SEED
@options.printed("JSON: one object per policy, a line each.")
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
    names = outcomes.policies(policies)
    if html is not None:
        results.check_place(html)
    found = scenarios.Found(scenario)
    if trace is not None:
        found.with_trace(trace)
    found.check_traces()
    if _unasked() and any(one.closed for model in found.scenario.models for one in model.traffic):
        names = [name for name in names if name != "oracle"]  # it cannot know such requests
    with bars.Bar() as bar:
        runs = comparison.compare(found.scenario, names, found.lines, seed=seed, progress=bar.tell)
        compared = list(runs)
    came_to = [each for _, each in compared]
    found.check_requests(came_to[0].requests)
    if html is not None:
        results.replace(html, compare_page.write_page(found, compared).encode())
    if as_json:
        for each in came_to:
            click.echo(json.dumps({"scenario": found.name, **each.to_json()}))
        return
    first = came_to[0]
    OUT.print(
        f"{found.name}, seed {first.seed}: {first.requests} requests in "
        f"{first.length_s / 3600:.2f} simulated hours"
    )
    paper.rows(outcomes.grid(came_to, paper.room()))
    OUT.print(outcomes.promise(found.scenario.objective))


def _unasked() -> bool:
    """Whether the policies are those of the default."""
    source = click.get_current_context().get_parameter_source("policies")
    return source is core.ParameterSource.DEFAULT
