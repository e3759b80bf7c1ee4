"""Which model a request means, how to reach a pod, and when to tell a client to come back."""

import difflib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pydantic

from modelserve import errors, ports
from modelserve.api import pods, quantities, spec, status, timestamps
from modelserve.api.keys import Key
from modelserve.decide import fleet, holding, prediction

# Retry-After where nothing is known, and its bounds, in real seconds.
RETRY_AFTER_REAL_S = 5
RETRY_AFTER_MOST_REAL_S = 3600


@dataclass(frozen=True, slots=True)
class Route:
    """What a gateway needs to know of one ModelServe."""

    key: Key
    served_name: str
    created_at: str  # RFC 3339
    terms: holding.Terms
    keep_alive_real_s: float  # 0: no keep-alives
    max_model_length_tokens: int
    model_name: str
    stalled: str = ""  # why this spec can never serve, in the operator's words
    waiting_for: str = ""
    next_ready_at: str = ""  # RFC 3339
    wait_real_s: float | None = None

    @property
    def created_unix_s(self) -> int:
        """Creation as Unix time, as ``/v1/models`` wants it."""
        return int(timestamps.parse_if_any(self.created_at) or 0.0)


class Table:
    """Routes by the names that clients send."""

    def __init__(self, routes: Iterable[Route] = ()) -> None:
        self._by_key = {route.key: route for route in routes}
        self._by_served: dict[str, list[Route]] = {}
        for route in sorted(self._by_key.values(), key=lambda r: (r.created_at, r.key)):
            self._by_served.setdefault(route.served_name, []).append(route)

    def find(self, model: str) -> Route | None:
        """By served name (of several, the ModelServe created first), else by ``namespace/name``."""
        if routes := self._by_served.get(model):
            return routes[0]
        namespace, _, name = model.partition("/")
        return self._by_key.get(Key(namespace, name))

    def get(self, key: Key) -> Route | None:
        """The route of this ModelServe."""
        return self._by_key.get(key)

    def __iter__(self) -> Iterator[Route]:
        return iter(self._by_key.values())

    def named(self) -> Sequence[tuple[str, Route]]:
        """Every model under the name that reaches it, sorted."""
        pairs = [(r.served_name if self.find(r.served_name) is r else str(r.key), r) for r in self]
        return sorted(pairs, key=lambda pair: pair[0])

    def nearest(self, model: str) -> Sequence[str]:
        """Up to three names that a client may have meant."""
        known = [name for name, _ in self.named()]
        lower = {name.lower(): name for name in known}
        close = difflib.get_close_matches(model.lower(), lower, n=3, cutoff=0.4)
        return [lower[name] for name in close]

    def shadowed(self) -> Sequence[str]:
        """A sentence for each ModelServe whose served name an older one has taken."""
        return [
            f"{loser.key} serves {name!r} as {routes[0].key} does, which is older and gets the "
            f"requests; reach it as {str(loser.key)!r}, or give it another spec.model.servedName"
            for name, routes in sorted(self._by_served.items())
            for loser in routes[1:]
        ]


def read_route(item: ports.Object) -> Route:
    """Read a ModelServe. Raises InputError if its spec makes no sense."""
    metadata = item["metadata"]
    key = Key.of(item)
    try:
        wanted = spec.ModelServeSpec.model_validate(item["spec"])
        found = status.ModelServeStatus.model_validate(item.get("status") or {})
        terms = read_terms(wanted, deleted="deletionTimestamp" in metadata)
    except (pydantic.ValidationError, errors.QuantityError) as error:
        raise errors.InputError(f"ModelServe {key} cannot be read: {error}") from error
    return Route(
        key=key,
        served_name=wanted.model.served_name or key.name,
        created_at=metadata.get("creationTimestamp", ""),
        terms=terms,
        keep_alive_real_s=float(wanted.gateway.keep_alive_seconds),
        max_model_length_tokens=prediction.max_model_tokens(wanted),
        model_name=wanted.model.name,
        stalled=_stalled(found, metadata.get("generation")),
        waiting_for=found.waiting_for or "",
        next_ready_at=found.next_ready_at or "",
        wait_real_s=found.autoscaler.wait_seconds if found.autoscaler else None,
    )


def read_terms(wanted: spec.ModelServeSpec, *, deleted: bool = False) -> holding.Terms:
    """What the spec lets a gateway do. Raises QuantityError."""
    closed = None
    if deleted:
        closed = holding.Refusal.DELETED
    elif wanted.scaling.mode is spec.Mode.MANUAL and wanted.replicas == 0:
        closed = holding.Refusal.SCALED_TO_ZERO
    hold = wanted.gateway.hold
    return holding.Terms(
        slots=wanted.gateway.slots_per_replica or wanted.engine.batching.max_sequences,
        max_requests=hold.max_requests,
        max_bytes=quantities.parse_bytes(hold.max_bytes),
        max_real_s=float(hold.max_seconds),
        closed=closed,
    )


def _stalled(found: status.ModelServeStatus, generation: int | None) -> str:
    if found.observed_generation != generation:
        return ""  # what was said of an earlier spec says nothing of a mended one
    stalled = status.ConditionType.STALLED
    of_type = (c for c in found.conditions if c.type == stalled and c.status == "True")
    return next((c.message or c.reason or str(stalled) for c in of_type), "")


def read_replica(pod: ports.Object, virtual_nodes: Collection[str]) -> fleet.Replica | None:
    """Read an engine pod; None for one that has ended and takes part in nothing any more."""
    if pods.is_over(pod):
        return None
    metadata = pod["metadata"]
    terminating = "deletionTimestamp" in metadata
    virtual = (pod.get("spec") or {}).get("nodeName") in virtual_nodes
    return fleet.Replica(
        uid=metadata["uid"],
        ready=pods.is_ready(pod),
        leaving=terminating or (pods.deletion_cost(pod) or 0) < 0,
        terminating=terminating,
        name=metadata["name"],
        address=pods.dial_address(pod, virtual=virtual),
        health_path=_health_path(pods.engine_container(pod)),
    )


def _health_path(container: Mapping[str, Any]) -> str:
    probe = container.get("readinessProbe") or container.get("startupProbe") or {}
    return str((probe.get("httpGet") or {}).get("path") or "/health")


def retry_after_real_s(route: Route | None, now_wall_s: float) -> int:
    """Whole real seconds after which another try makes sense, from the operator's forecast."""
    wait_real_s: float | None = None
    if route is not None:
        wait_real_s = route.wait_real_s
        ready_wall_s = timestamps.parse_if_any(route.next_ready_at)
        if ready_wall_s is not None and ready_wall_s > now_wall_s:
            wait_real_s = max(wait_real_s or 0.0, ready_wall_s - now_wall_s)
    if wait_real_s is None or not math.isfinite(wait_real_s):
        return RETRY_AFTER_REAL_S
    return max(1, min(RETRY_AFTER_MOST_REAL_S, math.ceil(wait_real_s)))


def waiting_comment(route: Route) -> str:
    """What a keep-alive says: one line, whatever the status holds."""
    reason = " ".join(route.waiting_for.split()) or "a replica with room"
    return f"waiting for {' '.join(route.served_name.split())}: {reason}"


def terms_in_force(route: Route, replicas: Iterable[fleet.Replica]) -> holding.Terms:
    """The terms, closed where the spec can never serve and no replica of an earlier one does."""
    if not route.stalled or route.terms.closed or any(r.ready for r in replicas):
        return route.terms
    return replace(route.terms, closed=holding.Refusal.STALLED)
