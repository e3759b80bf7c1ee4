"""Measured points of real engines, and the file they come from (``points.yaml`` or one like it).

The file's ``schema`` says what its fields mean; ``sources`` where each point was published.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TypeGuard

import yaml

from modelserve.errors import InputError

_MOST = 10**12  # larger ones are mistakes
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement: a model on GPUs under a load, and what was seen. Metrics by name and unit.

    Fields that the file leaves out are empty: ``""``, 0, or an empty mapping. ``problem`` says
    which could not be read.
    """

    id: str
    kind: str
    quality: str
    group: str
    model: str
    gpu: str
    tensor_parallel: int
    weights: str
    engine: str
    input_tokens: int | None
    output_tokens: int | None
    load: Mapping[str, Any]
    metrics: Mapping[str, float]
    source: str
    problem: str = ""


def read(path: Path | None = None) -> tuple[Point, ...]:
    """The points of a file, or those that ship with the package. Raises InputError."""
    name = str(path) if path is not None else "points.yaml"
    try:
        if path is None:
            text = resources.files("servelab.validation").joinpath("points.yaml").read_text("utf-8")
        else:
            text = path.read_text("utf-8")
        document = yaml.load(text, Loader=_LOADER)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"cannot read measured points from {name}: {reason}") from error
    return parse(document, name)


def parse(document: object, name: str) -> tuple[Point, ...]:
    """The points of a document. Raises InputError, naming file and entry."""
    rows = document.get("points") if isinstance(document, Mapping) else None
    if not isinstance(rows, list):
        raise InputError(f"{name} has no list `points`: it must be a mapping that holds one")
    return tuple(_point(row, f"{name}, point {at}") for at, row in enumerate(rows, 1))


def _point(row: object, where: str) -> Point:
    if not isinstance(row, Mapping) or not row.get("id") or not row.get("kind"):
        raise InputError(f"{where} must be a mapping with `id`, `kind` and `metrics`")
    problems: list[str] = []
    numbers = {key: _whole(row, key, problems) for key in ("tp", "input", "output")}
    load, metrics = (_mapping(row, key, problems) for key in ("load", "metrics"))
    return Point(
        id=str(row["id"]),
        kind=str(row["kind"]),
        quality=str(row.get("quality") or ""),
        group=str(row.get("group") or row["id"]),
        model=str(row.get("model") or ""),
        gpu=str(row.get("gpu") or ""),
        tensor_parallel=numbers["tp"] or 1,
        weights=str(row.get("weights") or ""),
        engine=str(row.get("engine") or ""),
        input_tokens=numbers["input"],
        output_tokens=numbers["output"],
        load=load,
        metrics={
            str(metric): float(value) for metric, value in metrics.items() if is_number(value)
        },
        source=str(row.get("source") or ""),
        problem="; ".join(problems),
    )


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is one that can be reckoned with."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and abs(value) < _MOST
    )


def _mapping(row: Mapping[str, Any], key: str, problems: list[str]) -> Mapping[str, Any]:
    value = row.get(key) or {}
    if not isinstance(value, Mapping):
        problems.append(f"`{key}` is {value!r}; it must be a mapping")
        return {}
    return value


def _whole(row: Mapping[str, Any], key: str, problems: list[str]) -> int | None:
    """A number of tokens or GPUs, rounded if it is a mean of several."""
    value = row.get(key)
    if value is None:
        return None
    if not is_number(value) or value < 0:
        problems.append(f"`{key}` is {value!r}; it must be a number from 0 on")
        return None
    return round(value)
