"""The admin endpoint: HTTP on a port of its own, JSON in and out, never on an engine's port."""

import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from aiohttp import web

from modelserve import errors
from servelab.engine import addresses
from servelab.engine.admin import description, documents
from servelab.engine.admin.control import Control

MAX_BODY_BYTES = 64 * 1024

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Controlled:
    """An engine under control: its name, its public address, and the control."""

    name: str
    url: str
    control: Control


class AdminServer:
    """The admin endpoint of a process's engines. Without ``token`` whoever reaches it may."""

    def __init__(self, engines: Mapping[str, Controlled], token: str | None = None) -> None:
        self._engines = engines
        self._token = token
        self._runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=1.0)
        self.url = ""

    async def start(self, host: str, port: int) -> None:
        """Listen. Raises SetUpError if that address cannot be had."""
        await self._runner.setup()
        try:
            with addresses.claimed(host, port, "--admin-listen", "the admin endpoint"):
                await web.TCPSite(self._runner, host, port).start()
        except errors.SetUpError:
            await self._runner.cleanup()
            raise
        self.url = f"http://{addresses.joined(*self._runner.addresses[0][:2])}"

    async def stop(self) -> None:
        """Listen no more."""
        await self._runner.cleanup()

    def _application(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[self._guard])
        app.router.add_get("/", self._describe)
        app.router.add_get("/engines", self._list)
        resources = (
            ("/queue", self._queue),
            ("/queue/{metric}", self._metric),
            ("/faults", self._faults),
            ("/faults/{kind}", self._fault),
        )
        for prefix in ("", "/engines/{engine}"):
            for path, handler in resources:
                for method in ("GET", "PUT", "DELETE"):
                    app.router.add_route(method, prefix + path, handler)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let in who may, and say in JSON what is wrong."""
        if not self._may(request):
            header = {"WWW-Authenticate": "Bearer"}
            return _error(401, "the bearer token is missing or wrong", header)
        try:
            return await handler(request)
        except errors.UnknownName as error:
            return _error(404, str(error))
        except errors.InputError as error:
            return _error(400, str(error))
        except web.HTTPException as error:
            allow = error.headers.get("Allow")
            headers = {"Allow": allow} if allow else {}
            hint = "" if error.status != 404 else "; GET / describes what there is"
            return _error(error.status, f"{error.reason}: {request.path}{hint}", headers)

    def _may(self, request: web.Request) -> bool:
        if self._token is None:
            return True
        given = request.headers.get("Authorization", "").encode()
        return hmac.compare_digest(given, f"Bearer {self._token}".encode())

    async def _describe(self, request: web.Request) -> web.Response:
        addresses = {name: each.url for name, each in self._engines.items()}
        return _json(description.document(addresses, metadata.version("modelserve")))

    async def _list(self, request: web.Request) -> web.Response:
        return _json(
            {
                name: {"url": each.url, "faults": each.control.faults()["holding"]}
                for name, each in self._engines.items()
            }
        )

    async def _queue(self, request: web.Request) -> web.Response:
        control = self._control(request)
        if request.method == "PUT":
            document = documents.parse(documents.Queue, await request.read())
            control.put_queue(documents.given(document), replace=True)
        elif request.method == "DELETE":
            control.drop_queue()
        return _json(control.queue())

    async def _metric(self, request: web.Request) -> web.Response:
        name = _known(request, "metric", documents.METRICS)
        control = self._control(request)
        if request.method == "PUT":
            fields = documents.one(documents.Queue, name, await request.read())
            control.put_queue(fields, replace=False)
        elif request.method == "DELETE":
            control.drop_queue(name)
        return _json(_part(control.queue(), name))

    async def _faults(self, request: web.Request) -> web.Response:
        control = self._control(request)
        if request.method == "PUT":
            document = documents.parse(documents.Faults, await request.read())
            control.put_faults(documents.given(document), replace=True)
        elif request.method == "DELETE":
            control.drop_faults()
        return _json(control.faults())

    async def _fault(self, request: web.Request) -> web.Response:
        kind = _known(request, "kind", documents.KINDS)
        control = self._control(request)
        if request.method == "PUT":
            fields = documents.one(documents.Faults, kind, await request.read())
            control.put_faults(fields, replace=False)
        elif request.method == "DELETE":
            control.drop_faults(kind)
        found = control.faults()
        return _json({"set": found["set"].get(kind), "holding": kind in found["holding"]})

    def _control(self, request: web.Request) -> Control:
        """The engine of the path, or the only one."""
        name = request.match_info.get("engine")
        if name is None and len(self._engines) == 1:
            return next(iter(self._engines.values())).control
        found = self._engines.get(name or "")
        if found is None and name is None:
            known = ", ".join(self._engines)
            raise errors.InputError(
                f"several engines run here: use /engines/NAME{request.path}; there are {known}"
            )
        if found is None:
            raise errors.UnknownName("engine", name or "", known=tuple(self._engines))
        return found.control


def _known(request: web.Request, part: str, known: tuple[str, ...]) -> str:
    name = request.match_info[part]
    if name not in known:
        raise errors.UnknownName("metric" if part == "metric" else "fault", name, known=known)
    return name


def _part(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: part.get(name) for key, part in document.items()}


def _json(document: object) -> web.Response:
    text = json.dumps(document, indent=2) + "\n"
    return web.Response(text=text, content_type="application/json")


def _error(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> web.Response:
    text = json.dumps({"error": sentence}, ensure_ascii=False) + "\n"
    return web.Response(
        status=status, text=text, content_type="application/json", headers=headers or {}
    )
