"""``servelab advise``: the scaling section that keeps a promise at the least cost."""

import dataclasses
import functools
import json
import math
import re
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import yaml
from rich import box, table

from modelserve import errors
from modelserve.api import spec as specs
from modelserve.cli import options
from modelserve.decide import prediction
from servelab.advice import halving, search
from servelab.cli import bars, completing, outcomes, scenarios
from servelab.report import paper
from servelab.sim import reading
from servelab.sweep import pool, settings, task
from servelab.workload import tracefile

OUT = paper.sheet()
MODEL, GPU, MOST = "meta-llama/Llama-3.1-8B-Instruct", "NVIDIA-H100-80GB-HBM3", 16
SHORTEST_DRAWN_S = 60.0
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)(ms|s)?$")


class Span(click.ParamType[float]):
    """``2s``, ``500ms``, ``1.5``: seconds."""

    name = "seconds"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        match = _SECONDS.match(str(value))
        if match is None or not float(match[1]):
            self.fail(f"{value!r} is no time; write for instance 2s or 500ms", param, ctx)
        return float(match[1]) / (1000 if match[2] == "ms" else 1)


@click.command()
@click.argument("trace", shell_complete=completing.TRACE)
@click.option(
    "--ttft-p95", type=Span(), required=True, help="What p95 of the time to the first token may be."
)
@click.option("--model", shell_complete=completing.MODEL, help=f"Hub name.  [default: {MODEL}]")
@click.option(
    "--gpu", shell_complete=completing.GPU, help=f"Product label or alias.  [default: {GPU}]"
)
@click.option(
    "--max-replicas", type=click.IntRange(1, 1000), help=f"Most replicas.  [default: {MOST}]"
)
@click.option("--gpu-hour-price", type=click.FloatRange(0, 1e6), help="What a GPU costs an hour.")
@click.option(
    "--scenario",
    help="Model, pools and price are this scenario's, with TRACE as its one model's traffic.",
)
@click.option(
    "--draws",
    type=click.IntRange(1, 100),
    help="Keep the promise in each of so many others like TRACE, of its blocks of up to 5 min.",
)
@click.option(
    "--budget-seconds",
    type=click.FloatRange(1),
    help="About how long to search; what then is found depends on the machine.",
)
@click.option("--workers", type=click.IntRange(1, 1024), help="Processes.  [default: one a core]")
@scenarios.SEED
@options.printed()
def advise(
    trace: str,
    ttft_p95: float,
    scenario: str | None,
    draws: int | None,
    budget_seconds: float | None,
    workers: int | None,
    seed: int | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Try scaling settings on TRACE, a file or the name of one that comes along.

    Every try is a simulation. Printed are the section to use, what it would have cost, and the next
    best. Exit status 1: nothing that was tried keeps the promise.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    question, own_seed = _question(trace, ttft_p95, scenario, given)
    if draws:
        question = _drawn(question, trace, draws)
    count = workers or pool.cores()
    with bars.Bar() as bar:
        searching = search.Search(
            question,
            functools.partial(pool.local, workers=count),
            batch=1000 if budget_seconds is None else max(1, 4 * count // max(1, question.draws)),
            left_s=_left(budget_seconds),
            progress=functools.partial(bar.count, "runs"),
            seed=own_seed if seed is None else seed,
        )
        verdict, untouched = searching.verdict()
    if verdict.advised is None:
        raise errors.ModelServeError(_refusal(verdict.quickest, question, searching))
    if as_json:
        click.echo(json.dumps(_document(trace, question, searching, verdict, untouched)))
    else:
        _show(trace, question, searching, verdict, untouched)


def _question(
    trace: str, promise_s: float, scenario: str | None, given: Mapping[str, Any]
) -> tuple[search.Question, int]:
    """The scenario with the trace in it, and its seed. Raises InputError."""
    if scenario is None:
        document = _document_of(given)
    else:
        if given["model"] or given["gpu"]:
            raise errors.InputError("--scenario names model and GPU: leave --model and --gpu out")
        document = scenarios.Found(scenario).document
    content: Mapping[str, Any] = document.content
    if len(content["models"]) > 1:
        raise errors.InputError(f"{scenario} has several models: advice is for one")
    if scenario is not None and given["max_replicas"]:
        place = (*search.SCALING, "maxReplicas")
        content = settings.applied(content, place, given["max_replicas"])
    if given["gpu_hour_price"] is not None:
        content = settings.applied(content, ("gpuHourPrice",), given["gpu_hour_price"])
    path = Path(trace)
    name = str(path.absolute()) if path.is_file() else trace
    if not path.is_file() and trace not in tracefile.PACKAGED:
        known = ", ".join(tracefile.PACKAGED)
        raise errors.InputError(f"{trace} is no file and no trace that comes along ({known})")
    lines = task.Beside("", trace)
    found = reading.validate(reading.Document(document.name, content, document.lines))
    longest = prediction.max_model_tokens(found.models[0].spec)
    length_s = _length_s(name, trace, lines, longest)
    most = found.models[0].spec.scaling.max_replicas
    return search.Question(content, name, length_s, promise_s, most, lines), found.seed


def _drawn(question: search.Question, trace: str, draws: int) -> search.Question:
    """The same of draws. Raises InputError for a trace of seconds."""
    if question.length_s < SHORTEST_DRAWN_S:
        raise errors.InputError(
            f"--draws: {trace} lasts {question.length_s:g} s, and others like it can be drawn from "
            f"{SHORTEST_DRAWN_S:g} s or more: leave --draws out"
        )
    return dataclasses.replace(question, draws=draws)


def _document_of(given: Mapping[str, Any]) -> reading.Document:
    """A scenario with one model on as many GPUs as it may take."""
    gpu, most = given["gpu"] or GPU, given["max_replicas"] or MOST
    spec = {
        "model": {"name": given["model"] or MODEL},
        "gpu": {"product": gpu},
        "scaling": {"maxReplicas": most},
    }
    pools = [{"gpu": gpu, "gpusPerNode": 8, "nodes": -(-most // 8)}]
    return reading.Document("advise", {"pools": pools, "models": [{"spec": spec}]}, {})


def _length_s(name: str, trace: str, lines: task.Beside, longest: int) -> float:
    last_s, count = 0.0, 0
    most_tokens = max(longest, tracefile.MOST_TOKENS)
    for arrival in tracefile.read(lines(name), trace, most_tokens=most_tokens):
        last_s, count = arrival.at_s, count + 1
    if not count:
        raise errors.InputError(f"{trace} holds no request")
    return last_s


def _left(budget_s: float | None) -> search.Left:
    if budget_s is None:
        return lambda: math.inf
    end_s = time.monotonic() + budget_s
    return lambda: end_s - time.monotonic()


def _refusal(quickest: halving.Tried, question: search.Question, searching: search.Search) -> str:
    came_to = quickest.came_to
    fields = ", ".join(f"{name} {value}" for name, value in quickest.candidate.fields)
    reached = outcomes.seconds(came_to.ttft_p95_s)
    if came_to.served < 0.95:
        reached = f"{reached} of the {outcomes.share(came_to.served)} that were served"
    if question.draws > 1:
        reached += f" in the worst of {question.draws} draws"
    tried = "none of the settings that the budget sufficed for" if searching.cut else "no settings"
    return (
        f"{tried} keep p95 of TTFT within {question.promise_s:g} s: the best found reach "
        f"{reached}, with {fields or 'the settings as they are'}, in {came_to.gpu_hours:.2f} GPU "
        "hours; raise --max-replicas, take a faster GPU, or promise less"
    )


def _section(tried: halving.Tried, question: search.Question) -> dict[str, Any]:
    """The whole scaling section: the scenario's own with the fields that were found."""
    own = question.content["models"][0]["spec"].get("scaling") or {}
    section = {**own, "maxReplicas": question.max_replicas}
    for name, value in tried.candidate.fields:
        section = settings.applied(section, tuple(name.split(".")), value)
    return section


def _document(
    trace: str,
    question: search.Question,
    searching: search.Search,
    verdict: halving.Verdict,
    untouched: halving.Tried,
) -> dict[str, Any]:
    def told(tried: halving.Tried | None) -> dict[str, Any] | None:
        if tried is None:
            return None
        figures = tried.came_to.to_json()
        kept = ("gpu_hours", "cost", "ttft_p95_s", "slo_attainment", "served")
        return {"scaling": _section(tried, question), **{name: figures[name] for name in kept}}

    return {
        "trace": trace,
        "ttft_p95_s": question.promise_s,
        "draws": question.draws,
        "advised": told(verdict.advised),
        "runner_up": told(verdict.runner_up),
        "as_it_is": told(untouched),
        "runs": searching.runs,
        "complete": not searching.cut,
    }


def _show(
    trace: str,
    question: search.Question,
    searching: search.Search,
    verdict: halving.Verdict,
    untouched: halving.Tried,
) -> None:
    advised = verdict.advised
    assert advised is not None, "a promise that nothing keeps was refused before"
    each = f" in each of {question.draws} draws" if question.draws else ""
    promise = f"p95 of TTFT within {question.promise_s:g} s{each}"
    OUT.print(f"{trace}: {promise}, by {searching.runs} runs")
    if searching.cut:
        OUT.print("The budget was used up before all were tried; more time may find better.")
    section = {"scaling": _section(advised, question)}
    OUT.print("\n" + yaml.safe_dump(section, sort_keys=False).rstrip(), markup=False)
    shown = table.Table(box=box.SIMPLE_HEAD)
    for name in ("", "GPU h", "cost", "TTFT p95", "within"):
        shown.add_column(name, justify="right" if name else "left")
    shown.add_column("differs in")
    rows = [("advised", advised), ("runner-up", verdict.runner_up), ("as it is", untouched)]
    for name, tried in rows:
        if tried is not None:
            shown.add_row(name, *_cells(tried, advised, question))
    paper.rows(shown)
    if question.draws > 1:
        OUT.print("TTFT p95 is the worst draw's; the rest are means.")


def _cells(tried: halving.Tried, advised: halving.Tried, question: search.Question) -> list[str]:
    came_to = tried.came_to
    cost = "–" if came_to.cost != came_to.cost else f"{came_to.cost:.2f}"
    mine, best = _section(tried, question), _section(advised, question)
    # A field that is told and one that is left out may mean the same.
    plain = specs.Scaling().model_dump(mode="json", by_alias=True)
    meant, best = {**plain, **mine}, {**plain, **best}
    names = [name for name in meant if meant[name] != best[name]]
    differs = ", ".join(f"{name} {mine.get(name, 'default')}" for name in names)
    figures = [f"{came_to.gpu_hours:.2f}", cost, outcomes.seconds(came_to.ttft_p95_s)]
    return [*figures, outcomes.share(came_to.slo_attainment), differs]
