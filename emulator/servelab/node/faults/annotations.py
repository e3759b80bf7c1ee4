"""Faults as an object's annotation or a pool's spec has them, told to people."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from modelserve import errors
from modelserve.api import faults as api
from modelserve.api import names, timestamps
from modelserve.api.pool import GPUPoolSpec
from modelserve.ports import Object
from servelab.node.faults import fault


@dataclass(frozen=True, slots=True)
class Row:
    """One fault of one object, or what is ``wrong`` with its list. Times are Unix seconds."""

    on: str
    found: fault.Fault | None
    now_s: float
    wrong: str = ""

    def to_json(self) -> Mapping[str, Any]:
        """One entry of ``servelab fault list -o json``."""
        if self.found is None:
            return {"on": self.on, "error": self.wrong}
        said = self.found.said.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return {"on": self.on, **said, "holds": self.found.holds(self.now_s)}

    def cells(self) -> tuple[str, ...]:
        """One row of the table."""
        if self.found is None:
            return self.on, self.wrong, "", "", "", ""
        start, end = self.found.start_s, self.found.end_s
        until = "for good" if end == fault.NEVER else timestamps.format_time(end)
        now = (
            "holds" if self.found.holds(self.now_s) else "over" if self.now_s >= end else "to come"
        )
        said = self.found.said
        return self.on, said.type, said.name or "", timestamps.format_time(start), until, now


def rows(kind: str, items: Iterable[Object], now_s: float, scale: float) -> list[Row]:
    """The faults of these objects; ``kind`` is pod, node or pool."""
    return [row for item in items for row in _of(kind, item, now_s, scale)]


def _of(kind: str, item: Object, now_s: float, scale: float) -> list[Row]:
    meta = item["metadata"]
    name = meta["name"] if "namespace" not in meta else f"{meta['namespace']}/{meta['name']}"
    try:
        said = api.parse((meta.get("annotations") or {}).get(names.FAULTS, ""), name)
        if kind == "pool":
            said = (*GPUPoolSpec.model_validate(item["spec"]).faults, *said)
    except (errors.InputError, ValueError) as error:
        return [Row(f"{kind}/{name}", None, now_s, str(error))]
    began = (item.get("status") or {}).get("startTime") or meta.get("creationTimestamp")
    target = fault.Target(name, name, timestamps.parse_if_any(began) or 0.0, scale, is_pod=True)
    return [Row(f"{kind}/{name}", fault.timed(each, target), now_s) for each in said]


def sentence(said: api.Fault) -> str:
    """What was injected."""
    after = f" in {said.after_seconds:g} emulated s" if said.after_seconds else " from now on"
    lasts = said.duration_seconds
    return f"{said.type}{after}{'' if lasts is None else f', for {lasts:g} emulated s'}"
