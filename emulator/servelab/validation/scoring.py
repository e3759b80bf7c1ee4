"""How far the simulated engine is from what was measured: by kind, GPU, engine, model.

An error is simulated over measured, less 1; a bias is the median error with its sign.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from servelab.report import figures
from servelab.validation import simulating
from servelab.validation.points import Point

WORST = 10
SPEED_UP = "speed_up_over_tp1"


@dataclass(frozen=True, slots=True)
class Score:
    """One figure of a point beside the simulated one; ``main`` if its kind is judged by it."""

    point: Point
    metric: str
    measured: float
    simulated: float
    main: bool

    @property
    def error(self) -> float:
        """Relative, with its sign."""
        return self.simulated / self.measured - 1.0


@dataclass(frozen=True, slots=True)
class Summary:
    """Errors of several figures; shares, not per cent."""

    n: int
    median_abs_error: float
    p90_abs_error: float
    bias: float
    within_25_percent: float

    def to_json(self) -> dict[str, float]:
        """With four digits after the point."""
        return {
            "n": self.n,
            "median_abs_error": round(self.median_abs_error, 4),
            "p90_abs_error": round(self.p90_abs_error, 4),
            "bias": round(self.bias, 4),
            "within_25_percent": round(self.within_25_percent, 4),
        }


@dataclass(frozen=True, slots=True)
class Skipped:
    """A point that was not run, and why."""

    id: str
    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a run over all points found."""

    points: int
    scores: Sequence[Score]
    skipped: Sequence[Skipped]

    @property
    def main(self) -> tuple[Score, ...]:
        """One score for each point that was run."""
        return tuple(score for score in self.scores if score.main)

    def groups(self, key: Callable[[Point], str]) -> dict[str, Summary]:
        """The main scores summed up by a property of their points, in alphabetical order."""
        found: dict[str, list[Score]] = {}
        for score in self.main:
            found.setdefault(key(score.point), []).append(score)
        return {name: summarise(found[name]) for name in sorted(found)}

    def besides(self) -> dict[str, Summary]:
        """The figures no kind is judged by, under ``kind metric``."""
        found: dict[str, list[Score]] = {}
        for score in self.scores:
            if not score.main:
                found.setdefault(f"{score.point.kind} {score.metric}", []).append(score)
        return {name: summarise(found[name]) for name in sorted(found)}

    def worst(self, count: int = WORST) -> list[Score]:
        """The main scores with the largest errors, worst first."""
        return sorted(self.main, key=lambda score: -abs(score.error))[:count]

    def to_json(self) -> dict[str, Any]:
        """The document that ``servelab validate --json`` prints."""
        metrics = {score.point.kind: score.metric for score in self.main}
        kinds = self.groups(kind_of)
        return {
            "points": self.points,
            "scored": len(self.main),
            "skipped": [{"id": one.id, "why": one.why} for one in self.skipped],
            "by_kind": {k: {"metric": metrics[k], **s.to_json()} for k, s in kinds.items()},
            "by_gpu": _json(self.groups(gpu_of)),
            "by_engine": _json(self.groups(engine_of)),
            "by_model": _json(self.groups(model_of)),
            "besides": _json(self.besides()),
            "worst": [
                {
                    "id": score.point.id,
                    "metric": score.metric,
                    "measured": score.measured,
                    "simulated": float(f"{score.simulated:.6g}"),
                }
                for score in self.worst()
            ],
        }


def run(points: Iterable[Point], tell: Callable[[int], None] = lambda done: None) -> Report:
    """Simulate every point that can be; ``tell`` hears after each how many are done."""
    scores: list[Score] = []
    skipped: list[Skipped] = []
    count = 0
    for point in points:
        count += 1
        try:
            scores += _scores(point, simulating.simulate(point))
        except simulating.CannotRun as reason:
            skipped.append(Skipped(point.id, str(reason)))
        tell(count)
    kept, without = _speed_ups(scores)
    return Report(count, kept, (*skipped, *without))


def summarise(scores: Sequence[Score]) -> Summary:
    """Of at least one score."""
    errors = [score.error for score in scores]
    sizes = [abs(error) for error in errors]
    return Summary(
        n=len(errors),
        median_abs_error=statistics.median(sizes),
        p90_abs_error=figures.percentile(sizes, 0.9),
        bias=statistics.median(errors),
        within_25_percent=sum(size <= 0.25 for size in sizes) / len(sizes),
    )


def kind_of(point: Point) -> str:
    """What was measured."""
    return point.kind


def gpu_of(point: Point) -> str:
    """The catalogue's key."""
    return point.gpu


def engine_of(point: Point) -> str:
    """The engine, without its version."""
    engine = simulating.engine_type(point.engine)
    return point.engine if engine is None else engine.value


def model_of(point: Point) -> str:
    """The name the point gives."""
    return point.model


def _scores(point: Point, simulated: Mapping[str, float]) -> list[Score]:
    main = simulating.METRIC_OF_KIND[point.kind]
    return [
        Score(point, metric, measured, simulated[metric], metric == main)
        for metric, measured in point.metrics.items()
        if metric in simulated and measured > 0
    ]


def _speed_ups(scores: Iterable[Score]) -> tuple[list[Score], list[Skipped]]:
    """Scaling points are compared by their speed-up over one GPU of the same group."""
    scaling = [score for score in scores if score.point.kind == "tp_scaling" and score.main]
    alone = {s.point.group: s for s in scaling if s.point.tensor_parallel == 1}
    kept = [score for score in scores if score.point.kind != "tp_scaling"]
    skipped = []
    for score in scaling:
        base = alone.get(score.point.group)
        if base is None or base is score:
            why = "the one-GPU run that others of its group are compared to"
            lonely = "no run of its group on one GPU to compare to"
            skipped.append(Skipped(score.point.id, why if base is score else lonely))
            continue
        measured = score.measured / base.measured
        simulated = score.simulated / base.simulated
        kept.append(Score(score.point, SPEED_UP, measured, simulated, True))
    return kept, skipped


def _json(groups: Mapping[str, Summary]) -> dict[str, dict[str, float]]:
    return {name: summary.to_json() for name, summary in groups.items()}
