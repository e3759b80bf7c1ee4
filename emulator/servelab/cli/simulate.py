"""``servelab simulate``: one scenario under one policy, on a virtual clock."""

import dataclasses
import json
import signal
from pathlib import Path
from typing import Any

import click

from modelserve.cli import options
from servelab.cli import bars, completing, outcomes, scenarios
from servelab.report import chart, paper
from servelab.sim import outcome, running

OUT = paper.sheet()
# Decisions that are shown; all are in the JSON.
SHOWN = 12


@click.command()
@scenarios.SCENARIO
@scenarios.TRACE
@click.option(
    "--policy",
    shell_complete=completing.POLICY,
    default="committed",
    show_default=True,
    help=f"One of {', '.join(running.policies())}.",
)
@scenarios.SEED
@options.printed()
def simulate(
    scenario: str, trace: Path | None, policy: str, seed: int | None, as_json: bool
) -> None:
    """Run SCENARIO, a file or the name of one that comes along, on a virtual clock.

    The decisions, the gateway's holding and the engines are the code that runs live. Equal input
    gives equal output, byte for byte.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found = scenarios.Found(scenario)
    if trace is not None:
        found.with_trace(trace)
    found.check_traces()
    with bars.Bar() as bar:
        run = running.run(
            found.scenario,
            policy,
            found.lines,
            seed=seed,
            progress=lambda at_s: bar.tell(policy, at_s),
        )
    came_to = outcome.of(run, found.scenario)
    found.check_requests(came_to.requests)
    if as_json:
        click.echo(json.dumps(_document(found, run, came_to)))
    else:
        _show(found, run, came_to)


def _document(found: scenarios.Found, run: running.Run, came_to: outcome.Outcome) -> dict[str, Any]:
    by_model = outcome.by_model(run, found.scenario)
    models = {
        model.name: {
            **by_model[model.name].to_json(),
            "cold_start_s": [outcome.plain(each) for each in model.ledger.cold_start_s],
            "ready": [[outcome.plain(at_s), count] for at_s, count in model.ledger.ready],
            "writes": [
                {name: outcome.plain(value) for name, value in dataclasses.asdict(each).items()}
                for each in model.writes
            ],
        }
        for model in run.models
    }
    return {"scenario": found.name, "outcome": came_to.to_json(), "models": models}


def _show(found: scenarios.Found, run: running.Run, came_to: outcome.Outcome) -> None:
    length_h = came_to.length_s / 3600
    OUT.print(
        f"{found.name}, policy {run.policy}, seed {run.seed}: {came_to.requests} requests in "
        f"{length_h:.2f} simulated hours on {run.gpus} GPUs"
    )
    paper.rows(outcomes.grid([came_to], paper.room()))
    OUT.print(outcomes.promise(found.scenario.objective))
    for model in run.models:
        points = [(at_s - run.start_s, float(count)) for at_s, count in model.ledger.ready]
        OUT.print(chart.steps(points, came_to.length_s, label=f"{model.name}: ready replicas"))
        for each in model.writes[:SHOWN]:
            OUT.print(f"{each.at_s:9.1f} s  {each.before} → {each.after}  {each.reason}")
        if len(model.writes) > SHOWN:
            more = len(model.writes) - SHOWN
            OUT.print(f"           … and {more} more; --json has all, each with its reason")
