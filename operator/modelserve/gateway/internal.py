"""The port that only the operator uses: demand, fences, shares. Every call needs the token."""

import contextlib
import hmac
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from aiohttp import web

from modelserve.api import wire
from modelserve.gateway import dispatch, feed

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
T = TypeVar("T")


class InternalApi:
    """Handlers of the internal port."""

    def __init__(self, dispatcher: dispatch.Dispatcher, demand: feed.Feed, token: str) -> None:
        self._dispatcher = dispatcher
        self._feed = demand
        self._expected = f"Bearer {token}".encode()

    def build(self) -> web.Application:
        """The application; run it with ``handler_cancellation``."""
        app = web.Application(middlewares=[self._authorize])
        app.router.add_get(wire.DEMAND_PATH, self.demand)
        app.router.add_post(wire.FENCE_PATH, self.fence)
        app.router.add_post(wire.UNFENCE_PATH, self.unfence)
        app.router.add_post(wire.SHARE_PATH, self.share)
        return app

    async def demand(self, request: web.Request) -> web.StreamResponse:
        """The stream of snapshots."""
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        # An operator that goes, or comes again, is no error.
        with contextlib.suppress(ConnectionError):
            async for line in self._feed.lines():
                await response.write(line)
        return response

    async def fence(self, request: web.Request) -> web.Response:
        """Grant a fence, or say what is in the way."""
        wanted = await _read(request, wire.FenceRequest.parse)
        return web.json_response(self._dispatcher.fence(wanted).to_json())

    async def unfence(self, request: web.Request) -> web.Response:
        """Take a fence back; one that is not in force does no harm."""
        self._dispatcher.unfence(await _read(request, lambda data: str(data["fenceId"])))
        return web.json_response({})

    async def share(self, request: web.Request) -> web.Response:
        """Take over the share."""
        self._dispatcher.share(await _read(request, wire.Share.parse))
        return web.json_response({})

    @web.middleware
    async def _authorize(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").encode(errors="replace")
        if not hmac.compare_digest(given, self._expected):
            return web.json_response({"error": "the token is missing or wrong"}, status=401)
        return await handler(request)


async def _read(request: web.Request, parse: Callable[[dict[str, Any]], T]) -> T:
    try:
        return parse(json.loads(await request.read()))
    except (ValueError, KeyError, TypeError) as error:
        sentence = json.dumps({"error": f"the body is not what {request.path} takes: {error}"})
        raise web.HTTPBadRequest(text=sentence, content_type="application/json") from None
