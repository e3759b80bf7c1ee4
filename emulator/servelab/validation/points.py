"""Measured points of real engines, and the file they come from (``points.yaml`` or one like it).

The file's ``schema`` says what its fields mean; ``sources`` where each point was published.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from modelserve.errors import InputError

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement: a model on GPUs under a load, and what was seen. Metrics by name and unit.

    Fields that the file leaves out are empty: ``""``, 0, or an empty mapping.
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
    where = f"{where} ({row['id']})"
    return Point(
        id=str(row["id"]),
        kind=str(row["kind"]),
        quality=str(row.get("quality") or ""),
        group=str(row.get("group") or row["id"]),
        model=str(row.get("model") or ""),
        gpu=str(row.get("gpu") or ""),
        tensor_parallel=_whole(row, "tp", where) or 1,
        weights=str(row.get("weights") or ""),
        engine=str(row.get("engine") or ""),
        input_tokens=_whole(row, "input", where),
        output_tokens=_whole(row, "output", where),
        load=_mapping(row, "load", where),
        metrics={
            str(metric): float(value)
            for metric, value in _mapping(row, "metrics", where).items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        },
        source=str(row.get("source") or ""),
    )


def _mapping(row: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    value = row.get(key) or {}
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: `{key}` is {value!r}; it must be a mapping")
    return value


def _whole(row: Mapping[str, Any], key: str, where: str) -> int | None:
    value = row.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**9:
        raise InputError(f"{where}: `{key}` is {value!r}; it must be a whole number from 0 on")
    return value
