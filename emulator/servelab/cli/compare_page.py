"""The page that ``compare`` writes: what each policy came to, and how it got there."""

from collections.abc import Iterator, Sequence

from servelab.cli import outcomes, scenarios
from servelab.report import page, plots
from servelab.sim import demand, outcome, running

# Of so many models each has plots of its own; more are added up.
MOST_MODELS = 3

READ = (
    "Area: replicas that are ready. Line: replicas that the traffic needs so that nobody waits, by "
    "the step law at the target load. Each plot has its own scale."
)

Compared = Sequence[tuple[running.Run, outcome.Outcome]]
Steps = Sequence[tuple[float, float]]


def write_page(found: scenarios.Found, compared: Compared) -> str:
    """The table, cost against waiting, waiting by share, and replicas over time."""
    came_to = [each for _, each in compared]
    first, about = came_to[0], found.scenario.description
    said = (
        f"{first.requests} requests in {first.length_s / 3600:.2f} simulated hours, seed "
        f"{first.seed}; the same requests, lengths and cold starts for every policy.",
        f"{outcomes.promise(found.scenario.objective)}.",
        "Simulated with ModelServe: no request was really sent, no GPU really used.",
    )
    names = outcomes.header(priced=first.cost == first.cost)
    rows = [outcomes.row(one) for one in came_to]
    figures = [_costs(came_to), _waits(found, compared), *_replicas(found, compared)]
    return page.render(found.name, [*([about] if about else []), *said], names, rows, figures)


def _costs(came_to: Sequence[outcome.Outcome]) -> page.Figure:
    priced = came_to[0].cost == came_to[0].cost
    points = [(e.policy, e.cost if priced else e.gpu_hours, e.ttft_p95_s) for e in came_to]
    what, unit = ("Cost", "") if priced else ("GPU hours", "GPU h")
    svg = plots.scatter(points, f"{what} against p95 of the time to the first token", unit, "s")
    return page.Figure(svg, "Lower and further left is better. Nothing beats what the line joins.")


def _waits(found: scenarios.Found, compared: Compared) -> page.Figure:
    series = [
        (run.policy, [ttft_s for model in run.models for ttft_s in model.records.ttft_s])
        for run, _ in compared
    ]
    limit_s = found.scenario.objective.ttft_seconds
    svg = plots.shares(series, "Share of requests with a first token within …", "s", mark=limit_s)
    return page.Figure(svg, f"The dashed line is the objective, {limit_s:g} s.")


def _replicas(found: scenarios.Found, compared: Compared) -> Iterator[page.Figure]:
    """For each policy, and of few models for each of them."""
    run, _ = compared[0]
    needed: dict[str, Steps] = {}
    for model in found.scenario.models:
        known = demand.needs(model, run.seed, found.lines)
        counts = [] if known is None else list(zip(known.from_s, known.counts, strict=True))
        needed[model.name] = _shifted(counts, run.start_s)
    ready = {
        run.policy: {each.name: _shifted(each.ledger.ready, run.start_s) for each in run.models}
        for run, _ in compared
    }
    if len(needed) > MOST_MODELS:
        whole = f"all {len(needed)} models"
        needed = {whole: added(list(needed.values()))}
        ready = {policy: {whole: added(list(each.values()))} for policy, each in ready.items()}
    end_s = max(one.length_s for _, one in compared)
    for name, needs in needed.items():
        for number, (run, _) in enumerate(compared):
            line = ready[run.policy][name]
            svg = plots.steps(
                line,
                end_s,
                f"{run.policy}: ready replicas of {name}",
                top=max((value for _, value in [*line, *needs]), default=1.0),
                needed=needs,
                colour=plots.colour(number),
            )
            yield page.Figure(svg, READ if number == 0 else "")


def added(lines: Sequence[Steps]) -> Steps:
    """The sum of step functions."""
    changes: list[tuple[float, float]] = []
    for line in lines:
        before = 0.0
        for at_s, value in line:
            changes.append((at_s, value - before))
            before = value
    found: list[tuple[float, float]] = []
    total = 0.0
    for at_s, change in sorted(changes):
        total += change
        if found and found[-1][0] == at_s:
            found[-1] = at_s, total
        else:
            found.append((at_s, total))
    return found


def _shifted(line: Sequence[tuple[float, int]], start_s: float) -> Steps:
    return [(at_s - start_s, float(value)) for at_s, value in line]
