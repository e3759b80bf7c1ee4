"""The Kubernetes API over the official client's asyncio side: raw calls, plain dictionaries.

Every failure leaves as one of the ClusterError family, with the server's own words in it.
"""

import asyncio
import contextlib
import importlib.metadata
import json
import random
import urllib.parse
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Self

import aiohttp

from modelserve import errors, ports
from modelserve.adapters import clock as clocks
from modelserve.adapters import credentials, failures, session
from modelserve.adapters import watch as watches

CONNECT_REAL_S = 5.0
ANSWER_REAL_S = 30.0
USER_AGENT = f"modelserve/{importlib.metadata.version('modelserve')}"

APPLY = "application/apply-patch+yaml"

# Refuse fields that the server would otherwise drop without a word.
_STRICT = {"fieldValidation": "Strict"}


class KubeCluster:
    """ports.Cluster at a real API server. Close it: it holds connections."""

    def __init__(
        self,
        client: session.Session,
        source: credentials.Credentials,
        clock: ports.Clock | None = None,
        rng: random.Random | None = None,
        answer_real_s: float = ANSWER_REAL_S,
    ) -> None:
        self._client = client
        self._source = source
        self._clock = clock or clocks.SystemClock()
        self._rng = rng or random.Random()
        self._host = str(client.configuration.host).rstrip("/")
        self._answer_real_s = answer_real_s
        self._limits = aiohttp.ClientTimeout(total=answer_real_s, sock_connect=CONNECT_REAL_S)

    @classmethod
    async def connect(
        cls,
        kubeconfig: str | None = None,
        *,
        clock: ports.Clock | None = None,
        rng: random.Random | None = None,
        connections: int | None = None,
        answer_real_s: float = ANSWER_REAL_S,
    ) -> Self:
        """Read the credentials; nothing is sent yet. Raises InputError for an unusable kubeconfig.

        Without a path: the pod's service account, else $KUBECONFIG, else ~/.kube/config.
        ``connections`` at once, watches included; each takes 300 kB. Who has not answered after
        ``answer_real_s`` is away.
        """
        source = credentials.Credentials(kubeconfig)
        configuration = await source.load()
        if connections is not None:
            configuration.connection_pool_maxsize = connections
        try:
            client = session.Session(configuration)
        except (OSError, ValueError) as error:
            raise errors.InputError(
                f"the certificates of {configuration.host} cannot be used: {error}"
            ) from error
        return cls(client, source, clock, rng, answer_real_s)

    async def close(self) -> None:
        """Close all connections. May be called twice."""
        await self._client.close()
        # Connections that were aborted tell the event loop so in its next round.
        await asyncio.sleep(0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    @property
    def host(self) -> str:
        """The API server's URL."""
        return self._host

    async def get(self, resource: ports.Resource, namespace: str | None, name: str) -> ports.Object:
        answer: ports.Object = await self.request("GET", resource.path(namespace, name))
        return answer

    async def list(
        self,
        resource: ports.Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> tuple[Sequence[ports.Object], str]:
        selection = watches.Selection(resource, namespace, label_selector, field_selector)
        return await watches.list_all(self, selection)

    def watch(
        self,
        resource: ports.Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> watches.ListWatch:
        selection = watches.Selection(resource, namespace, label_selector, field_selector)
        return watches.ListWatch(self, selection, self._clock, self._rng)

    async def create(
        self, resource: ports.Resource, namespace: str | None, body: ports.Object
    ) -> ports.Object:
        document = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        answer: ports.Object = await self.request(
            "POST", resource.path(namespace), document, query=_STRICT
        )
        return answer

    async def apply(
        self,
        resource: ports.Resource,
        namespace: str | None,
        name: str,
        body: ports.Object,
        *,
        manager: str,
        force: bool = False,
        subresource: str = "",
    ) -> ports.Object:
        """Server-side apply; apiVersion, kind and name are filled in where the body lacks them."""
        answer: ports.Object = await self.request(
            "PATCH",
            resource.path(namespace, name, subresource),
            _identified(resource, name, body, subresource),
            query={"fieldManager": manager, "force": str(force).lower(), **_STRICT},
            content_type=APPLY,
        )
        return answer

    async def patch(
        self,
        resource: ports.Resource,
        namespace: str | None,
        name: str,
        body: ports.Object | Sequence[ports.Object],
        *,
        content_type: str = ports.MERGE_PATCH,
        subresource: str = "",
        manager: str = "",
    ) -> ports.Object:
        query = {**_STRICT, **({"fieldManager": manager} if manager else {})}
        path = resource.path(namespace, name, subresource)
        answer: ports.Object = await self.request(
            "PATCH", path, body, query=query, content_type=content_type
        )
        return answer

    async def replace(
        self,
        resource: ports.Resource,
        namespace: str | None,
        name: str,
        body: ports.Object,
        *,
        subresource: str = "",
    ) -> ports.Object:
        document = _identified(resource, name, body, subresource)
        path = resource.path(namespace, name, subresource)
        answer: ports.Object = await self.request("PUT", path, document, query=_STRICT)
        return answer

    async def delete(
        self,
        resource: ports.Resource,
        namespace: str | None,
        name: str,
        *,
        grace_s: int | None = None,
        uid: str = "",
        resource_version: str = "",
    ) -> None:
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        wanted = {"uid": uid, "resourceVersion": resource_version}
        if wanted := {key: value for key, value in wanted.items() if value}:
            options["preconditions"] = wanted
        await self.request("DELETE", resource.path(namespace, name), options)

    async def list_page(
        self, selection: watches.Selection, limit: int, resume: str = ""
    ) -> watches.Page:
        """One page of a list. Raises Expired if ``resume`` is too old."""
        query = {
            **selection.query(),
            "limit": str(limit),
            **({"continue": resume} if resume else {}),
        }
        resource = selection.resource
        body = await self.request("GET", resource.path(selection.namespace), query=query)
        # Items of built-in kinds come without these two.
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        items = tuple({**kind, **item} for item in body.get("items") or ())
        metadata = body.get("metadata") or {}
        version = metadata.get("resourceVersion", "")
        return watches.Page(items, version, metadata.get("continue") or "")

    @contextlib.asynccontextmanager
    async def stream(
        self, selection: watches.Selection, version: str, silence_real_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of a watch from this version on. Raises Unavailable after that much silence."""
        query = {
            **selection.query(),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
        }
        path = selection.resource.path(selection.namespace)
        limits = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_REAL_S, sock_read=silence_real_s
        )
        what = f"watch of {path}"
        response = await self._begun(what, path, query, limits)
        try:
            if response.status == 401:
                await self._source.refresh(self._client.configuration)
            if response.status != 200:
                raise failures.from_response(
                    what, response.status, await response.read(), response.headers
                )
            yield session.lines(response, what)
        except session.CONNECTION_ERRORS as error:
            raise failures.from_exception(what, error) from error
        finally:
            session.abort(response)

    async def _begun(
        self, what: str, path: str, query: Mapping[str, str], limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """A stream that may then be silent for long; its head comes as soon as any answer."""
        try:
            async with asyncio.timeout(self._answer_real_s):
                return await self._send("GET", path, None, query, limits)
        except TimeoutError as error:
            raise errors.Unavailable(
                f"{what}: no answer within {self._answer_real_s:g} s"
            ) from error

    async def request(
        self,
        method: str,
        path: str,
        body: ports.Object | Sequence[ports.Object] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Any:
        """Any call at the API server; the parsed JSON of its answer."""
        what = f"{method} {path}"
        status, headers, content = await self._exchange(method, path, body, query, content_type)
        if status == 401:
            await self._source.refresh(self._client.configuration)
            status, headers, content = await self._exchange(method, path, body, query, content_type)
        if not 200 <= status < 300:
            raise failures.from_response(what, status, content, headers)
        try:
            return json.loads(content) if content else {}
        except ValueError as error:
            raise errors.Unavailable(f"{what}: the answer is no JSON", status) from error

    async def text(self, path: str, query: Mapping[str, str]) -> tuple[int, str]:
        """GET what is no JSON, such as a pod's log: status, whatever it is, and body."""
        status, _, content = await self._exchange("GET", path, None, query, "application/json")
        return status, content.decode("utf-8", "replace")

    async def _exchange(
        self,
        method: str,
        path: str,
        body: ports.Object | Sequence[ports.Object] | None,
        query: Mapping[str, str] | None,
        content_type: str,
    ) -> tuple[int, Mapping[str, str], bytes]:
        try:
            response = await self._send(method, path, body, query, self._limits, content_type)
            async with response:
                return response.status, response.headers, await response.read()
        except session.CONNECTION_ERRORS as error:
            raise failures.from_exception(f"{method} {path}", error) from error

    async def _send(
        self,
        method: str,
        path: str,
        body: ports.Object | Sequence[ports.Object] | None,
        query: Mapping[str, str] | None,
        limits: aiohttp.ClientTimeout,
        content_type: str = "application/json",
    ) -> aiohttp.ClientResponse:
        url = self._host + path + (f"?{urllib.parse.urlencode(query)}" if query else "")
        headers = {"User-Agent": USER_AGENT, "Accept": "application/json"}
        headers["Content-Type"] = content_type
        headers |= await self._source.headers(self._client.configuration)
        try:
            return await self._client.send(method, url, headers, body, limits)
        except session.CONNECTION_ERRORS as error:
            raise failures.from_exception(f"{method} {path}", error) from error


def _identified(
    resource: ports.Resource, name: str, body: ports.Object, subresource: str
) -> dict[str, Any]:
    scale = subresource == "scale"
    kind = {
        "apiVersion": "autoscaling/v1" if scale else resource.api_version,
        "kind": "Scale" if scale else resource.kind,
    }
    return {**kind, **body, "metadata": {"name": name, **body.get("metadata", {})}}
