"""The end of the demo in a table, a chart and a few sentences. Pure: text out."""

from collections.abc import Sequence

from servelab.demo import results
from servelab.report import chart, figures
from servelab.trial import answer

SHOWN_FAILURES = 5


def render(result: results.Result) -> str:
    """Everything the demo has to say at its end."""
    peak = result.peak_replicas
    blocks = [
        chart.steps(result.replicas, result.length_s, label="Replicas over emulated time"),
        _requests(result),
        _cold_start(result),
        _figures(result),
        f"From zero to {peak} and back: {_verdict(result)}",
    ]
    return "\n\n".join(block for block in blocks if block)


def _requests(result: results.Result) -> str:
    head = f"{'Time to first token':<30}{'requests':>9}{'p50':>9}{'p95':>9}{'p99':>9}"
    rows = [head]
    for title, outcomes in (
        ("cold (model at zero)", result.cold),
        ("warm (trace)", result.warm),
    ):
        rows.append(_row(title, outcomes, result))
    return "\n".join(
        [*rows, "emulated seconds at the client, with the wait at the gateway while replicas start"]
    )


def _row(title: str, outcomes: Sequence[answer.Outcome], result: results.Result) -> str:
    cells = "".join(f"{value:>9.2f}" for value in result.percentiles(outcomes))
    return f"{title:<30}{len(outcomes):>9}{cells}"


def _cold_start(result: results.Result) -> str:
    rows = [f"{'First cold start, emulated s':<30}{'predicted':>11}{'measured':>11}"]
    for name, title in results.PARTS.items():
        predicted = result.predicted.get(name, 0.0)
        measured = result.measured.get(name, 0.0)
        if predicted or measured:
            rows.append(f"{title:<30}{predicted:>11.1f}{measured:>11.1f}")
    return "\n".join(rows)


def _figures(result: results.Result) -> str:
    wake = result.wake
    rows = (
        ("requests", f"{len(result.outcomes)}"),
        ("errors", f"{len(result.failures)}"),
        ("most replicas", f"{result.peak_replicas}"),
        ("GPU-minutes (emulated)", f"{result.gpu_minutes:.1f}"),
        ("emulated time", f"{result.length_s / 60:.1f} min at scale {result.time_scale:g}"),
        ("request → /scale written", f"{wake.scale_write_s * 1000:.0f} ms (real)"),
        ("of that in the operator", f"{wake.activation_s * 1000:.0f} ms (real)"),
        ("request → pod bound", f"{wake.bound_s * 1000:.0f} ms (real)"),
        (
            "sent behind schedule, p99",
            f"{figures.percentile(result.late_real_s, 0.99) * 1000:.1f} ms (real)",
        ),
        ("wall time", f"{result.wall_s:.0f} s"),
    )
    failures = [f"failed: {outcome.problem}" for outcome in result.failures[:SHOWN_FAILURES]]
    return "\n".join([*(f"{title:<30}{text:>24}" for title, text in rows), *failures])


def _verdict(result: results.Result) -> str:
    if result.ok:
        return "every request got its answer."
    reasons = []
    if result.failures:
        reasons.append(f"{len(result.failures)} requests did not get their answer")
    if not result.outcomes:
        reasons.append("no request was sent")
    if not result.scaled_to_zero:
        reasons.append("the model did not come back to zero")
    return f"no: {', and '.join(reasons)}."
