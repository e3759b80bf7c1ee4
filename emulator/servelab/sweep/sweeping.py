"""Runs the points that are not done yet, and puts all of them in order."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from modelserve import errors
from servelab.sweep import plan, pool, summary, task

Row = Mapping[str, Any]
Progress = Callable[[int], None]


class Memory(Protocol):
    """Outcomes of points by their keys, kept as they come."""

    done: dict[str, Row]

    def add(self, key: str, figures: Row) -> None:
        """Keep one more."""


class Forgetful:
    """Keeps them as long as the process lives."""

    def __init__(self) -> None:
        self.done: dict[str, Row] = {}

    def add(self, key: str, figures: Row) -> None:
        """Keep one more."""
        self.done[key] = figures


def sweep(
    points: Sequence[plan.Point],
    lines: task.Beside,
    surroundings: str,
    memory: Memory,
    run: pool.Run,
    progress: Progress = lambda done: None,
) -> Sequence[Row]:
    """Figures of every point, in the order of the points, however they were run.

    ``progress`` gets the number of points done. Raises InputError for the first that cannot be run.
    """
    keys = [point.key(surroundings) for point in points]
    missing = [n for n, key in enumerate(keys) if key not in memory.done]
    tasks = [_task(points[n], lines) for n in missing]
    done = len(points) - len(missing)
    progress(done)
    for number, result in run(tasks):
        point = points[missing[number]]
        if result.figures is None:
            raise errors.InputError(f"{_named(point)}: {result.failure}")
        memory.add(keys[missing[number]], result.figures)
        done += 1
        progress(done)
    return [memory.done[key] for key in keys]


def rows(points: Sequence[plan.Point], figures: Sequence[Row]) -> list[Row]:
    """What a file holds: the fields that were set in any of them, then every figure."""
    names = dict.fromkeys(name for point in points for name in point.values)
    return [{**names, **point.values, **each} for point, each in zip(points, figures, strict=True)]


def setups(points: Sequence[plan.Point], figures: Sequence[Row], seeds: int) -> list[summary.Setup]:
    """The same by combination and policy; ``points`` are as ``plan.points`` orders them."""
    return [
        summary.setup(points[at].values, points[at].policy, figures[at : at + seeds])
        for at in range(0, len(points), seeds)
    ]


def _task(point: plan.Point, lines: task.Beside) -> task.Task:
    return task.Task(point.content, point.policy, point.seed, lines)


def _named(point: plan.Point) -> str:
    said = [f"{name}={value}" for name, value in point.values.items()]
    return ", ".join([*said, f"policy {point.policy}"])
