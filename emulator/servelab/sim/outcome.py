"""What a run came to, in the figures that policies are compared by."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from servelab.report import figures
from servelab.sim import scenario
from servelab.sim.running import ModelRun, Run


@dataclass(frozen=True, slots=True)
class Outcome:
    """All models of a run together; NaN where there is nothing to tell.

    GPU hours count each replica's GPUs from its bind to its end, draining included; idle ones are
    those of ready replicas without any request; a node's are those of all nodes that stood, busy
    or not. Times to the first token count from the arrival at
    the gateway. The share that met the objective is of all requests, those refused included.
    """

    policy: str
    peak_replicas: int
    gpu_hours: float
    idle_gpu_hours: float
    node_gpu_hours: float
    cold_starts: int
    ttft_p50_s: float
    ttft_p95_s: float
    ttft_p99_s: float
    held_mean_s: float
    held_p95_s: float
    tpot_p50_s: float
    tpot_p95_s: float
    e2e_p95_s: float
    slo_attainment: float
    scale_writes: int
    requests: int
    completed: int
    refused: int
    expired: int
    cut: int
    failed: int
    unfinished: int
    input_tokens: int
    output_tokens: int
    decisions: int
    cost: float
    length_s: float
    seed: int

    def to_json(self) -> dict[str, Any]:
        """Numbers to six digits after the point; what is not known is null."""
        return {name: plain(value) for name, value in asdict(self).items()}


NAMES: Sequence[str] = tuple(each.name for each in fields(Outcome))


def plain(value: Any) -> Any:
    """A number as JSON takes it."""
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 6)
    return value


def of(run: Run, given: scenario.Scenario) -> Outcome:
    """The whole run."""
    return _of(run, run.models, given)


def by_model(run: Run, given: scenario.Scenario) -> Mapping[str, Outcome]:
    """Each model by itself."""
    return {model.name: _of(run, (model,), given) for model in run.models}


def _of(run: Run, models: Sequence[ModelRun], given: scenario.Scenario) -> Outcome:
    ledgers = [model.ledger for model in models]
    records = [model.records for model in models]

    def column(name: str) -> list[float]:
        return [value for each in records for value in getattr(each, name)]

    def total(name: str) -> int:
        return sum(getattr(each, name) for each in records)

    ttft_s, tpot_s, held_s = sorted(column("ttft_s")), sorted(column("tpot_s")), column("held_s")
    gpu_hours = sum(each.gpu_s for each in ledgers) / 3600
    price = given.gpu_hour_price
    arrived, ended = total("arrived"), sum(each.ended for each in records)
    return Outcome(
        policy=run.policy,
        peak_replicas=_peak(ledgers),
        gpu_hours=gpu_hours,
        idle_gpu_hours=sum(each.idle_gpu_s for each in ledgers) / 3600,
        node_gpu_hours=run.node_gpu_s / 3600,
        cold_starts=sum(each.cold_starts for each in ledgers),
        ttft_p50_s=figures.percentile(ttft_s, 0.5),
        ttft_p95_s=figures.percentile(ttft_s, 0.95),
        ttft_p99_s=figures.percentile(ttft_s, 0.99),
        held_mean_s=sum(held_s) / len(held_s) if held_s else math.nan,
        held_p95_s=figures.percentile(held_s, 0.95),
        tpot_p50_s=figures.percentile(tpot_s, 0.5),
        tpot_p95_s=figures.percentile(tpot_s, 0.95),
        e2e_p95_s=figures.percentile(column("e2e_s"), 0.95),
        slo_attainment=_met(records, given.objective) / arrived if arrived else math.nan,
        scale_writes=sum(each.writes for each in ledgers),
        requests=arrived,
        completed=total("completed"),
        refused=total("refused"),
        expired=total("expired"),
        cut=total("cut"),
        failed=total("failed"),
        unfinished=arrived - ended,
        input_tokens=total("input_tokens"),
        output_tokens=total("output_tokens"),
        decisions=sum(model.decisions for model in models),
        cost=math.nan if price is None else gpu_hours * price,
        length_s=run.end_s - run.start_s,
        seed=run.seed,
    )


def _met(records: Iterable[Any], objective: scenario.Objective) -> int:
    """Requests that got what was promised."""
    most_s, tpot_s = objective.ttft_seconds, objective.tpot_seconds
    if tpot_s is None:
        return sum(sum(ttft <= most_s for ttft in each.ttft_s) for each in records)
    return sum(
        sum(
            ttft <= most_s and tpot <= tpot_s
            for ttft, tpot in zip(each.ttft_s, each.tpot_s, strict=True)
        )
        for each in records
    )


def _peak(ledgers: Sequence[Any]) -> int:
    """The most replicas asked for at any time, all models together."""
    if len(ledgers) == 1:
        return int(ledgers[0].peak)
    changes = []
    for ledger in ledgers:
        before = 0
        for at_s, count in ledger.counts:
            changes.append((at_s, count - before))
            before = count
    now = peak = 0
    for _, change in sorted(changes):
        now += change
        peak = max(peak, now)
    return peak
