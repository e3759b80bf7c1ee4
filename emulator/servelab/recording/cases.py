"""The pods to record: read from ``cases*.yaml``, with what all of them share filled in."""

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pydantic
import yaml
from pydantic.alias_generators import to_camel

from modelserve import errors

FILES = [
    Path(__file__).with_name(name)
    for name in ("cases.yaml", "cases-more.yaml", "cases-restart-all.yaml")
]
IMAGE = "docker.io/library/busybox:1"
GRACE_S = 5
# The server that most cases run: it listens at once and answers /health.
SERVER = "mkdir -p /www; echo ok > /www/health; exec /bin/httpd -f -p 8000 -h /www"


class _Part(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, populate_by_name=True
    )


class Act(_Part):
    """Something done to the pod ``t`` seconds after its creation; words depend on ``verb``."""

    t: float = pydantic.Field(ge=0)
    verb: Literal["delete", "evict", "taint", "patch", "preempt", "kubelet"]
    grace_seconds: int | None = None
    subresource: str = ""
    patch: Mapping[str, Any] = pydantic.Field(default_factory=dict)
    stop_seconds: float = 0.0  # of a kubelet that is stopped


class Print(_Part):
    """A kubectl command whose answer is kept; ``{pod}`` and ``{node}`` stand for the names."""

    t: float = pydantic.Field(ge=0)
    command: str


class Case(_Part):
    """One pod. ``pod`` is its spec; a container's ``sh`` is a shell command."""

    name: str
    seconds: float = pydantic.Field(gt=0)  # for which it is watched
    pod: Mapping[str, Any]
    behavior: Mapping[str, Mapping[str, Any]] = pydantic.Field(default_factory=dict)
    acts: Sequence[Act] = ()
    prints: Sequence[Print] = ()
    alone: bool = False  # it changes the node: no other case at the same time
    scheduled: bool = False  # by the scheduler, not by its own ``nodeName``

    def manifest(self, node: str) -> dict[str, Any]:
        """The pod as it is created."""
        spec = copy.deepcopy(dict(self.pod))
        spec.setdefault("terminationGracePeriodSeconds", GRACE_S)
        spec.setdefault("automountServiceAccountToken", False)
        if not self.scheduled:
            spec["nodeName"] = node
        for key in ("initContainers", "containers"):
            if key in spec:
                spec[key] = [_container(each) for each in spec[key]]
        labels = {"scenario": self.name}
        meta = {"name": self.name, "labels": labels}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _container(raw: Mapping[str, Any]) -> dict[str, Any]:
    found = {"image": IMAGE, "imagePullPolicy": "IfNotPresent", **raw}
    shell = found.pop("sh", None if "command" in found else SERVER)
    return found if shell is None else found | {"command": ["/bin/sh", "-c", shell]}


def read(*paths: Path) -> list[Case]:
    """Read the cases of these files, or of all. Raises InputError with the place that is wrong."""
    found = [case for path in paths or FILES for case in _read(path)]
    names = [case.name for case in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise errors.InputError(f"two cases are called {min(twice)!r}")
    return found


def _read(path: Path) -> list[Case]:
    try:
        document = yaml.safe_load(path.read_text())
        return [Case.model_validate(_counted(each)) for each in document["cases"]]
    except OSError as error:
        raise errors.InputError(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, TypeError, KeyError) as error:
        raise errors.InputError(f"{path} holds no cases: {error}") from error
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise errors.InputError(f"{path}: at {place}: {first['msg']}") from error


def _counted(raw: object) -> object:
    """A copy without YAML's shared parts, which could be changed together."""
    return json.loads(json.dumps(raw))


def choose(cases: Sequence[Case], wanted: Iterable[str], times: int) -> list[Case]:
    """Those named, or all; each so many times. Raises InputError for a stranger."""
    names = list(wanted)
    strangers = sorted(set(names) - {case.name for case in cases})
    if strangers:
        known = ", ".join(case.name for case in cases)
        raise errors.InputError(f"there is no case {strangers[0]!r}; there are {known}")
    found = [case for case in cases if not names or case.name in names]
    return [
        case if number == 0 else case.model_copy(update={"name": f"{case.name}-{number + 1}"})
        for case in found
        for number in range(times)
    ]
