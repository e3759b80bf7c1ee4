"""A pod as the kubelet reads it: containers, probes, pull policies, grace."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from modelserve.ports import Object

TARGETS = ("httpGet", "tcpSocket", "grpc", "exec")


class ProbeKind(StrEnum):
    STARTUP = "Startup"
    READINESS = "Readiness"
    LIVENESS = "Liveness"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a probe or a hook connects to; without a host, to the pod."""

    port: int
    path: str = ""
    scheme: str = "http"
    host: str = ""

    def at(self, pod_ip: str) -> str:
        """Address and port."""
        return f"{self.host or pod_ip}:{self.port}"

    def url(self, pod_ip: str) -> str:
        """As Go writes it: a path always begins with a slash."""
        path = self.path if not self.path or self.path.startswith(("/", "?")) else f"/{self.path}"
        return f"{self.scheme}://{self.at(pod_ip)}{path}"


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe. Periods are real seconds, as a kubelet's."""

    kind: ProbeKind
    initial_delay_s: float
    period_s: float
    failure_threshold: int
    success_threshold: int
    where: Target
    target: str = "httpGet"
    grace_real_s: float | None = None  # of a kill for its sake; None: the pod's
    timeout_s: float = 1.0
    command: tuple[str, ...] = ()  # of exec


@dataclass(frozen=True, slots=True)
class Container:
    """One container; ``raw`` is its part of the pod's spec."""

    name: str
    image: str
    pull_policy: str
    init: bool
    sidecar: bool
    probes: tuple[Probe, ...]
    raw: Mapping[str, Any]
    ephemeral: bool = False  # added while the pod ran: it never restarts, and nothing waits for it

    @property
    def main(self) -> bool:
        """One of those that the pod is there for."""
        return not self.init and not self.ephemeral

    def probe(self, kind: ProbeKind) -> Probe | None:
        return next((probe for probe in self.probes if probe.kind is kind), None)

    @property
    def resources(self) -> Mapping[str, Mapping[str, str]]:
        """Requests and limits, as far as it has any."""
        asked = self.raw.get("resources") or {}
        return {kind: asked[kind] for kind in ("limits", "requests") if asked.get(kind)}

    @property
    def field_path(self) -> str:
        """Where the container stands in the pod, as events name it."""
        kind = "initContainers" if self.init else "containers"
        return f"spec.{'ephemeralContainers' if self.ephemeral else kind}{{{self.name}}}"


@dataclass(frozen=True, slots=True)
class Pod:
    """What the kubelet needs of a pod.

    ``containers`` in start order: init containers first, ephemeral ones last.
    """

    namespace: str
    name: str
    uid: str
    node: str
    generation: int
    restart_policy: str
    readiness_gates: tuple[str, ...]
    containers: tuple[Container, ...]
    raw: Object

    @property
    def grace_real_s(self) -> float:
        """What its containers have between SIGTERM and SIGKILL."""
        asked = self.raw["metadata"].get("deletionGracePeriodSeconds")
        found = self.raw["spec"].get("terminationGracePeriodSeconds", 30)
        return float(found if asked is None else asked)

    @property
    def deleted(self) -> bool:
        """Whether its deletion was asked for."""
        return bool(self.raw["metadata"].get("deletionTimestamp"))

    @property
    def annotations(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.raw["metadata"].get("annotations") or {}
        return found


def parse(pod: Object) -> Pod:
    """Read a bound pod as the API server shows it (defaults filled in)."""
    meta, spec = pod["metadata"], pod["spec"]
    init = [_container(c, init=True) for c in spec.get("initContainers") or ()]
    main = [_container(c, init=False) for c in spec["containers"]]
    added = [
        dataclasses.replace(_container(c, init=False), ephemeral=True)
        for c in spec.get("ephemeralContainers") or ()
    ]
    gates = spec.get("readinessGates") or ()
    return Pod(
        namespace=meta["namespace"],
        name=meta["name"],
        uid=meta["uid"],
        node=spec.get("nodeName", ""),
        generation=int(meta.get("generation", 1)),
        restart_policy=spec.get("restartPolicy", "Always"),
        readiness_gates=tuple(gate["conditionType"] for gate in gates),
        containers=(*init, *main, *added),
        raw=pod,
    )


def _container(raw: Mapping[str, Any], *, init: bool) -> Container:
    found = (
        _probe(raw, kind, key)
        for kind, key in (
            (ProbeKind.STARTUP, "startupProbe"),
            (ProbeKind.READINESS, "readinessProbe"),
            (ProbeKind.LIVENESS, "livenessProbe"),
        )
    )
    image = raw.get("image", "")
    return Container(
        name=raw["name"],
        image=image,
        pull_policy=raw.get("imagePullPolicy") or _default_policy(image),
        init=init,
        sidecar=init and raw.get("restartPolicy") == "Always",
        probes=tuple(probe for probe in found if probe is not None),
        raw=raw,
    )


def _default_policy(image: str) -> str:
    tail = image.rpartition("/")[2]
    latest = (":" not in tail and "@" not in tail) or tail.endswith(":latest")
    return "Always" if latest else "IfNotPresent"


def _probe(container: Mapping[str, Any], kind: ProbeKind, key: str) -> Probe | None:
    raw = container.get(key)
    if not raw:
        return None
    how = next((each for each in TARGETS if raw.get(each)), "exec")
    target = raw.get(how) or {}
    grace = raw.get("terminationGracePeriodSeconds")
    return Probe(
        kind=kind,
        initial_delay_s=float(raw.get("initialDelaySeconds", 0)),
        period_s=float(raw.get("periodSeconds", 10)),
        failure_threshold=int(raw.get("failureThreshold", 3)),
        success_threshold=int(raw.get("successThreshold", 1)),
        where=http_target(target, container),
        target=how,
        grace_real_s=None if grace is None else float(grace),
        timeout_s=float(raw.get("timeoutSeconds", 1)),
        command=tuple(map(str, target.get("command") or ())),
    )


def http_target(raw: Mapping[str, Any], container: Mapping[str, Any]) -> Target:
    """Read where an HTTP request, or a connection, goes to; ports may be named."""
    return Target(
        _port(raw.get("port", 0), container.get("ports") or ()),
        str(raw.get("path", "")),
        str(raw.get("scheme", "HTTP")).lower(),
        str(raw.get("host") or ""),
    )


def _port(port: int | str, ports: Sequence[Mapping[str, Any]]) -> int:
    if isinstance(port, int) or port.isdigit():
        return int(port)
    named = (entry["containerPort"] for entry in ports if entry.get("name") == port)
    return int(next(named, 0))
