"""Recordings of what a kubelet did with pods: their shape, and how a file of them is read."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pydantic
from pydantic.alias_generators import to_camel

from modelserve import errors
from modelserve.api import timestamps

PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
LISTS = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


class _Shape(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class Update(_Shape):
    """One watch event of the pod, ``t`` real seconds after its creation."""

    t: float
    type: str
    metadata: Mapping[str, Any] = pydantic.Field(default_factory=dict)
    status: Mapping[str, Any] = pydantic.Field(default_factory=dict)


class Event(_Shape):
    """An Event about the pod, with its repeats counted."""

    type: str
    reason: str
    message: str
    count: int | None = 1
    source: Mapping[str, Any] = pydantic.Field(default_factory=dict)
    field_path: str | None = None
    seen: Sequence[tuple[float, int]] = ()  # time and count of each change, where it was watched
    first_timestamp: str | None = None
    last_timestamp: str | None = None


class Log(_Shape):
    """An answer of the pod's log endpoint."""

    query: str
    status: int
    body: str


class Deletion(_Shape):
    """A deletion asked for at ``t``; ``options`` are DeleteOptions, if any."""

    model_config = _Shape.model_config | {"extra": "allow"}

    t: float

    @property
    def grace_s(self) -> int | None:
        """The grace asked for; None for the pod's own."""
        extra = self.model_extra or {}
        options = extra.get("options") or extra
        found = options.get("gracePeriodSeconds", options.get("grace_period_seconds"))
        return None if found is None else int(found)


class Answer(_Shape):
    """What a command answered."""

    code: int = 0
    stdout: str = ""
    stderr: str = ""


class Print(Answer):
    """A kubectl command, ``t`` seconds after the pod's creation; ``{pod}`` stands for its name."""

    t: float
    command: str


class Act(_Shape):
    """A patch of the pod, or of one of its subresources, ``t`` seconds after its creation."""

    model_config = _Shape.model_config | {"extra": "ignore"}

    t: float
    subresource: str = ""
    patch: Mapping[str, Any] = pydantic.Field(default_factory=dict)


class Scenario(_Shape):
    """One pod: as created, how its containers behaved, and all that was seen of it."""

    scenario: str
    pod: Mapping[str, Any]
    behavior: Mapping[str, Mapping[str, Any]] = pydantic.Field(default_factory=dict)
    delete: Deletion | None = None
    acts: Sequence[Act] = ()
    updates: Sequence[Update]
    events: Sequence[Event] = ()
    logs: Sequence[Log] = ()
    prints: Sequence[Print] = ()

    @property
    def container_names(self) -> Sequence[str]:
        """In the order they start; those that a patch adds come last."""
        return self.container_names_at(None)

    def container_names_at(self, age_s: float | None) -> Sequence[str]:
        """Those that the pod has at that age; None for all it will have."""
        spec = self.pod["spec"]
        acts = [act for act in self.acts if age_s is None or act.t <= age_s]
        added = [c for act in acts for c in _added(act)]
        inits = spec.get("initContainers") or ()
        return [c["name"] for c in (*inits, *spec["containers"], *added)]

    @property
    def last_s(self) -> float:
        """When the last thing was seen of it, counted from its creation."""
        last = self.updates[-1].t if self.updates else 0.0
        began = next(
            (found for u in self.updates if (found := u.status.get("startTime")) is not None), None
        )
        if began is None:
            return last
        stamps = [event.last_timestamp for event in self.events if event.last_timestamp]
        since = timestamps.parse_time(began)
        return max([last, *(timestamps.parse_time(stamp) - since for stamp in stamps)])

    @property
    def last_line_s(self) -> float:
        """When the last line is written to a log, counted from its container's start."""
        lines = (line for words in self.behavior.values() for line in words.get("log") or ())
        return max((float(line.partition(" ")[0]) for line in lines), default=0.0)

    @property
    def probe_period_s(self) -> float:
        """The longest period of its probes; 0 without any."""
        spec = self.pod["spec"]
        periods = [
            float(container[kind].get("periodSeconds", 10))
            for container in (*(spec.get("initContainers") or ()), *spec["containers"])
            for kind in PROBES
            if container.get(kind)
        ]
        return max(periods, default=0.0)


def _added(act: Act) -> Sequence[Mapping[str, Any]]:
    """The ephemeral containers that a patch adds."""
    found: Sequence[Mapping[str, Any]] = (act.patch.get("spec") or {}).get(
        "ephemeralContainers"
    ) or ()
    return found


_FILE = pydantic.TypeAdapter(list[Scenario])


def read(path: Path) -> list[Scenario]:
    """Read a file of recordings. Raises InputError with the place that is wrong."""
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise errors.InputError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise errors.InputError(f"{path} is no recording: no JSON: {error}") from error
    if isinstance(document, dict) and "scenarios" in document:
        document = document["scenarios"]
    try:
        found = _FILE.validate_python(document)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the top"
        raise errors.InputError(f"{path} is no recording: at {place}: {first['msg']}") from error
    _require_pods(path, found)
    return found


def _require_pods(path: Path, found: Sequence[Scenario]) -> None:
    if not found:
        raise errors.InputError(f"{path} holds no scenario")
    names: set[str] = set()
    for number, scenario in enumerate(found):
        where = f"{path}: scenario {number} ({scenario.scenario!r})"
        try:
            name = str(scenario.pod["metadata"]["name"])
            known = set(scenario.container_names)
        except (KeyError, TypeError) as error:
            raise errors.InputError(f"{where}: the pod lacks {error}") from error
        if name in names:
            raise errors.InputError(f"{where}: another scenario has a pod {name!r} too")
        names.add(name)
        strangers = sorted(set(scenario.behavior) - known)
        if strangers:
            raise errors.InputError(f"{where}: behavior names no container: {strangers[0]!r}")
