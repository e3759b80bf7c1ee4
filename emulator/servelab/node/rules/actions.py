"""What the life of a pod asks for: writes, events, log lines, commands to its engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from modelserve.api import names


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """A strategic merge patch of the pod's status: our keys only. A later one replaces it."""

    status: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Annotate:
    """Annotations to set."""

    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Emit:
    """An event of the kubelet; ``kind`` is Normal or Warning."""

    kind: str
    reason: str
    message: str
    field_path: str = ""


@dataclass(frozen=True, slots=True)
class Log:
    """A line of a container's log, at Unix real seconds."""

    container: str
    at_real_s: float
    line: str


@dataclass(frozen=True, slots=True)
class NewLog:
    """A container starts anew: its log so far is the previous one."""

    container: str


class Verb(StrEnum):
    RESERVE = "reserve"  # bind the engine's address, which refuses connections
    OPEN = "open"  # listen, and answer as one that is not ready
    SERVE = "serve"
    DRAIN = "drain"
    KILL = "kill"
    DISTURB = "disturb"  # let it hang, or be slow, or be well again


@dataclass(frozen=True, slots=True)
class Command:
    """A command to an engine of the pod. ``grace_real_s`` bounds a drain.

    A disturbed one answers nothing if it is ``hung``, and its steps take ``factor`` as long.
    """

    verb: Verb
    grace_real_s: float = 0.0
    container: str = ""
    hung: bool = False
    factor: float = 1.0


class Path(StrEnum):
    """Where bytes come from, as the node's links name it."""

    REGISTRY = "registry"
    STORAGE = "read"


@dataclass(frozen=True, slots=True)
class Slow:
    """The node's path is so many times slower, for this pod's sake; 1: no more."""

    path: Path
    factor: float


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove the pod from the API: grace 0, only this very UID."""


@dataclass(frozen=True, slots=True)
class ImagesChanged:
    """The node has an image it did not have."""


Action = WriteStatus | Annotate | Emit | Log | NewLog | Command | Slow | Delete | ImagesChanged


def tells_phase(action: Action) -> bool:
    """Whether it tells that a phase of a start has begun or ended."""
    return isinstance(action, Annotate) and names.PHASES in action.annotations
