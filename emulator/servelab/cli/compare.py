"""``servelab compare``: one scenario under several policies, on the same draws."""

import json
import signal
from pathlib import Path

import click

from modelserve import errors
from servelab.cli import scenarios, simulate
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
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, a list by policy.")
def compare(
    scenario: str, trace: Path | None, policies: str, seed: int | None, as_json: bool
) -> None:
    """Run SCENARIO under each of the policies and print what each came to, side by side.

    Requests, lengths and the jitter of cold starts are the same for all of them.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    names = [name.strip() for name in policies.split(",") if name.strip()]
    if not names:
        raise errors.InputError("--policies names none: give some, with commas between them")
    for name in names:
        running.check_policy(name)
    found = scenarios.Found(scenario)
    if trace is not None:
        found.with_trace(trace)
    with scenarios.Bar() as bar:
        compared = comparison.compare(
            found.scenario, names, found.lines, seed=seed, progress=bar.tell
        )
        outcomes = [came_to for _, came_to in compared]
    if as_json:
        document = {"scenario": found.name, "policies": [each.to_json() for each in outcomes]}
        click.echo(json.dumps(document))
        return
    first = outcomes[0]
    OUT.print(
        f"{found.name}, seed {first.seed}: {first.requests} requests in "
        f"{first.length_s / 3600:.2f} simulated hours"
    )
    OUT.print(simulate.figures_of(outcomes, found.scenario.gpu_hour_price is not None))
