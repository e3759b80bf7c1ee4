"""The routes of the kubelet API, one server for all emulated nodes."""

import re
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from modelserve import errors
from servelab.node.serving import (
    access,
    attributes,
    commands,
    forwarding,
    inspecting,
    logs,
    telemetry,
)

_PROXIED = re.compile(r"/api/v1/nodes/(?:https?:)?([^/:]+)(?::\w*)?/proxy(?:/|$)")
_CONTAINER = "{namespace}/{pod}/{container}"
_WITH_UID = "{namespace}/{pod}/{uid}/{container}"


@dataclass(frozen=True, slots=True)
class Files:
    """PEM files: whose certificates are let in, and our own."""

    client_ca: Path
    certificate: Path
    key: Path


def server_context(files: Files) -> ssl.SSLContext:
    """TLS that asks for a certificate of the client CA, but lets a token speak too.

    Raises InputError.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_OPTIONAL
    try:
        context.load_cert_chain(files.certificate, files.key)
        context.load_verify_locations(files.client_ca)
    except (OSError, ssl.SSLError) as error:
        raise errors.InputError(
            f"the kubelet API's certificates cannot be used ({files.certificate}, {files.key}, "
            f"{files.client_ca}): {error}"
        ) from error
    return context


@dataclass(frozen=True, slots=True)
class Options:
    """``access`` None lets everybody in, for tests alone; without ``enters`` there is no exec."""

    access: access.Access | None
    enters: bool = True


class KubeletServer:
    """A pod's namespace and name say which node is meant, else the request's path does."""

    def __init__(self, inspector: inspecting.Inspector, options: Options) -> None:
        self._host = inspector.host
        self._options = options
        self._commands = commands.Commands(inspector)
        self._forwarding = forwarding.Forwarding(inspector)
        self._telemetry = telemetry.Telemetry(inspector)
        self.app = web.Application(middlewares=[self._admit])
        router = self.app.router
        for prefix in ("", "/nodes/{node}"):
            self._route_node(router, prefix)
        router.add_get(f"/containerLogs/{_CONTAINER}", self._logs)
        self._route_acting(router)

    def _route_node(self, router: web.UrlDispatcher, prefix: str) -> None:
        asked = self._telemetry
        for path, handler in {
            "/metrics": asked.metrics,
            "/metrics/cadvisor": asked.cadvisor,
            "/metrics/dcgm": asked.dcgm,
            "/metrics/resource": asked.resource,
            "/stats/summary": asked.summary,
            "/pods": asked.pods,
            "/runningpods/": asked.running_pods,
            "/healthz": asked.healthz,
            "/configz": asked.configz,
        }.items():
            router.add_get(prefix + path, handler)

    def _route_acting(self, router: web.UrlDispatcher) -> None:
        if not self._options.enters:
            for path in attributes.ACTING:
                router.add_route("*", f"{path}/{{tail:.*}}", _disabled)
            return
        for path in (_CONTAINER, _WITH_UID):
            for method in ("GET", "POST"):
                router.add_route(method, f"/exec/{path}", self._commands.exec)
                router.add_route(method, f"/attach/{path}", self._commands.attach)
            router.add_post(f"/run/{path}", self._commands.run)
        for path in ("{namespace}/{pod}", "{namespace}/{pod}/{uid}"):
            for method in ("GET", "POST"):
                router.add_route(method, f"/portForward/{path}", self._forwarding.forward)

    @web.middleware
    async def _admit(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Find out which node is meant, and whether the caller may."""
        where, named = request.match_info, self._named(request)
        node = named
        if "pod" in where:
            served = self._host.lookup(where["namespace"], where["pod"])
            node = "" if served is None else served.pod.node
        request[telemetry.NODE] = node
        known = self._host.served_nodes().get(node)
        if known is not None and known.lost(self._host.unix_s()) and request.transport is not None:
            request.transport.abort()
            return web.Response()  # Nobody hears it.
        if self._options.access is not None:
            path = request.path.removeprefix(f"/nodes/{where['node']}" if "node" in where else "")
            wanted = attributes.of(request.method, path, node)
            refused = await access.refusal(self._options.access, request, wanted)
            if refused is not None:
                return refused
        if node and named and node != named:
            # The API server let somebody ask another node, which does not have the pod.
            return web.Response(status=404, text=f'pod "{where["pod"]}" does not exist')
        return await handler(request)

    def _named(self, request: web.Request) -> str:
        """The node that the request is for as far as it says; the only one there is."""
        if "node" in request.match_info:
            return request.match_info["node"]
        # The API server says so for whom it asks: /api/v1/nodes/<name>/proxy/…
        match = _PROXIED.match(request.headers.get("X-Forwarded-Uri", ""))
        if match:
            return match[1]
        known = list(self._host.served_nodes())
        return known[0] if len(known) == 1 else ""

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        return await logs.container_logs(request, self._host)


async def _disabled(request: web.Request) -> web.Response:
    return web.Response(status=405, text="Debug endpoints are disabled.\n")
