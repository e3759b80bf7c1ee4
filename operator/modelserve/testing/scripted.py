"""An HTTP server that answers as told: what a real API server does only on its bad days."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Self

from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ScriptedServer:
    """Answers each request with the next of its script; ``requests`` keeps what was asked.

    Where the script ends it answers 503. ``async with`` it; ``kubeconfig`` makes it an API server.
    """

    def __init__(self, *script: Answer) -> None:
        self.script = list(script)
        self.requests: list[web.Request] = []
        self.bodies: list[bytes] = []
        self._arrival = asyncio.Event()
        self._runner = web.AppRunner(_application(self._handle), shutdown_timeout=0.01)
        self._port = 0

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._runner.cleanup()

    @property
    def address(self) -> str:
        """host:port."""
        return f"127.0.0.1:{self._port}"

    @property
    def kubeconfig(self) -> str:
        """The text of a kubeconfig that leads here."""
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": f"http://{self.address}"}}],
            "users": [{"name": "u", "user": {"token": "secret"}}],
        }
        return json.dumps(document)

    async def asked(self, count: int) -> None:
        """Wait until so many requests came."""
        while len(self.requests) < count:
            await self._arrival.wait()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.bodies.append(await request.read())
        self._arrival.set()
        self._arrival = asyncio.Event()
        answer = self.script.pop(0) if self.script else respond(503, {"message": "script ends"})
        return await answer(request)


def respond(
    status: int, body: Any, headers: dict[str, str] | None = None, *, raw: bytes | None = None
) -> Answer:
    """A whole answer: JSON, or ``raw`` bytes."""

    async def answer(request: web.Request) -> web.StreamResponse:
        content = json.dumps(body).encode() if raw is None else raw
        return web.Response(status=status, body=content, headers=headers)

    return answer


def stream(*parts: bytes | dict[str, Any], then: str = "end") -> Answer:
    """Lines one by one (bytes as they are), ``then`` "end", "drop" (cut) or "silence"."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for part in parts:
            await response.write(part if isinstance(part, bytes) else _line(part))
        if then == "silence":
            await asyncio.Event().wait()
        if then == "drop" and request.transport is not None:
            request.transport.abort()
        return response

    return answer


def hang() -> Answer:
    """No answer, not even its head."""

    async def answer(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    return answer


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _application(handler: Answer) -> web.Application:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    return application
