"""Who asks, and whether he may: as a kubelet in webhook mode without anonymous access.

A client certificate of the cluster's CA, or a bearer token that the API server knows
(TokenReview); then the API server decides (SubjectAccessReview). Answers are kept for a while.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from aiohttp import web

from modelserve import errors, ports
from servelab.node.serving import attributes

log = logging.getLogger(__name__)

TOKEN_REVIEWS = ports.Resource(
    "authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False
)
ACCESS_REVIEWS = ports.Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
# How long a kubelet keeps what it was told, by default.
TOKEN_REAL_S, ALLOWED_REAL_S, DENIED_REAL_S = 120.0, 300.0, 30.0
FEW_KEPT, MOST_KEPT = 100, 10_000
AUTHENTICATED = "system:authenticated"

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class User:
    """Who asks."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(slots=True)
class _Kept(Generic[_T]):
    """Answers until they are too old."""

    now_s: Callable[[], float]
    found: dict[Hashable, tuple[float, _T]] = field(default_factory=dict)
    full: int = FEW_KEPT  # with so many it is looked which are too old

    def get(self, key: Hashable) -> _T | None:
        until_s, value = self.found.get(key, (0.0, None))
        return value if self.now_s() < until_s else None

    def put(self, key: Hashable, value: _T, for_s: float) -> None:
        if len(self.found) >= self.full:
            self._forget(self.now_s())
        self.found[key] = (self.now_s() + for_s, value)

    def _forget(self, now_s: float) -> None:
        self.found = {key: kept for key, kept in self.found.items() if now_s < kept[0]}
        if len(self.found) >= MOST_KEPT:
            self.found.clear()
        self.full = min(MOST_KEPT, max(FEW_KEPT, 2 * len(self.found)))


class Access:
    """Asks the API server. ``now_s`` is monotonic, real."""

    def __init__(self, cluster: ports.Cluster, now_s: Callable[[], float]) -> None:
        self._cluster = cluster
        self._tokens = _Kept[User](now_s)
        self._decisions = _Kept[bool](now_s)
        self._asked: dict[Hashable, asyncio.Task[Any]] = {}

    @property
    def remembered(self) -> int:
        """Answers that are kept, those that are too old as well."""
        return len(self._tokens.found) + len(self._decisions.found)

    async def who(self, request: web.Request) -> User | None:
        """The user; None if he does not say, or it is not true. Raises ClusterError."""
        certificate = request.transport and request.transport.get_extra_info("peercert")
        if certificate:
            return user_of(certificate)
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return None
        key = hashlib.sha256(token.encode()).digest()
        known = self._tokens.get(key)
        if known is not None:
            return known
        found = await self._once(("token", key), lambda: self._review(token))
        if found is not None:
            self._tokens.put(key, found, TOKEN_REAL_S)
        return found

    async def may(self, user: User, node: str, verb: str, subresource: str) -> bool:
        """Whether the user may do that to the node. Raises ClusterError."""
        key = (user, node, verb, subresource)
        known = self._decisions.get(key)
        if known is not None:
            return known
        allowed = await self._once(key, lambda: self._decide(user, node, verb, subresource))
        self._decisions.put(key, allowed, ALLOWED_REAL_S if allowed else DENIED_REAL_S)
        return allowed

    async def _review(self, token: str) -> User | None:
        body = _body(TOKEN_REVIEWS, {"token": token})
        status = (await self._cluster.create(TOKEN_REVIEWS, None, body)).get("status") or {}
        if not status.get("authenticated"):
            return None
        told = status.get("user") or {}
        extra = tuple((key, tuple(values)) for key, values in (told.get("extra") or {}).items())
        groups = tuple(told.get("groups") or ())
        return User(told.get("username", ""), told.get("uid", ""), groups, extra)

    async def _decide(self, user: User, node: str, verb: str, subresource: str) -> bool:
        spec = {
            "user": user.name,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": {key: list(values) for key, values in user.extra},
            "resourceAttributes": {
                "verb": verb,
                "version": "v1",
                "resource": "nodes",
                "subresource": subresource,
                "name": node,
            },
        }
        body = _body(ACCESS_REVIEWS, spec)
        status = (await self._cluster.create(ACCESS_REVIEWS, None, body)).get("status") or {}
        return bool(status.get("allowed"))

    async def _once(self, key: Hashable, ask: Callable[[], Awaitable[_T]]) -> _T:
        """Ask once for all who want to know the same at the same time."""
        task = self._asked.get(key)
        if task is None:
            task = self._asked[key] = asyncio.ensure_future(_coroutine(ask))
            task.add_done_callback(lambda _: self._asked.pop(key, None))
        found: _T = await asyncio.shield(task)
        return found


async def refusal(
    access: Access, request: web.Request, wanted: attributes.Attributes
) -> web.Response | None:
    """A kubelet's answer to who may not; None to who may."""
    try:
        user = await access.who(request)
    except errors.ClusterError as error:
        log.warning("a caller of the kubelet API could not be identified: %s", error)
        user = None
    if user is None:
        return web.Response(status=401, text="Unauthorized")
    told = f"user={user.name}, verb={wanted.verb}, resource=nodes"
    for subresource in wanted.subresources:
        try:
            if await access.may(user, wanted.node, wanted.verb, subresource):
                return None
        except errors.ClusterError as error:
            log.warning("%s of the kubelet API: %s", user.name, error)
            text = f"Authorization error ({told}, subresource={subresource})"
            return web.Response(status=500, text=text)
    listed = " ".join(wanted.subresources)
    return web.Response(status=403, text=f"Forbidden ({told}, subresource(s)=[{listed}])\n")


def user_of(certificate: Mapping[str, Any]) -> User | None:
    """The user that a client certificate names: common name, and organizations as groups."""
    pairs = [pair for part in certificate.get("subject") or () for pair in part]
    names = [value for key, value in pairs if key == "commonName"]
    groups = [value for key, value in pairs if key == "organizationName"]
    if not names:
        return None
    return User(names[-1], groups=(*groups, AUTHENTICATED))


def _body(resource: ports.Resource, spec: Mapping[str, Any]) -> ports.Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "spec": dict(spec)}


async def _coroutine(ask: Callable[[], Awaitable[_T]]) -> _T:
    return await ask()
