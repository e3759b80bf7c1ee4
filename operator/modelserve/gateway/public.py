"""The address that clients know: an OpenAI-compatible API for all models."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from aiohttp import http_exceptions, web

from modelserve.decide import routing
from modelserve.gateway import answers, calls, exchange, metrics

log = logging.getLogger(__name__)

MAX_BODY_BYTES = 32 * 1024**2
# Requests that come before the API server has answered: how many wait, and for how long.
UNSYNCED_REQUESTS = 1000
UNSYNCED_REAL_S = 30.0

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PublicApi:
    """Handlers of the public port."""

    def __init__(self, context: exchange.Context, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._context = context
        self._clock = context.dispatcher.clock
        self._max_body_bytes = max_body_bytes
        self._unsynced = 0
        self.stopping = False

    def build(self) -> web.Application:
        """The application; run it with ``handler_cancellation``."""
        app = web.Application(
            client_max_size=self._max_body_bytes, middlewares=[self._shape_errors]
        )
        app.router.add_get("/v1/models", self.models)
        app.router.add_get("/v1/models/{model:.+}", self.model)
        app.router.add_post("/v1/{call:.+}", self.call)
        for path in ("/health", "/healthz", "/livez"):
            app.router.add_get(path, self.healthz)
        app.router.add_get("/readyz", self.readyz)
        app.router.add_get("/metrics", self.metrics)
        return app

    async def call(self, request: web.Request) -> web.StreamResponse:
        """Anything that is asked of a model."""
        began_real_s = self._clock.real_s()
        if {".", ".."} & set(request.path.split("/")):
            # Decoded and joined to an engine's address it would lead out of /v1.
            raise web.HTTPNotFound
        try:
            body = await request.read()
        except (web.RequestPayloadError, http_exceptions.BadHttpMessage) as error:
            message = "the body is not what Content-Encoding or Transfer-Encoding says it is"
            raise answers.bad_request(message, code="invalid_content") from error
        call = calls.parse_call(request.path, body, request.content_type)
        if not self._context.view.synced.is_set() and not await self._wait_for_sync():
            return self._refuse(answers.starting())
        route = self._context.view.table.find(call.model)
        if route is None:
            nearest = self._context.view.table.nearest(call.model)
            return self._refuse(answers.unknown_model(call.model, nearest))
        return await exchange.Exchange(self._context, request, call, route, began_real_s).run()

    async def models(self, request: web.Request) -> web.Response:
        """All models, those at zero too."""
        named = self._context.view.table.named()
        body = {"object": "list", "data": [_model(name, route) for name, route in named]}
        return web.json_response(body)

    async def model(self, request: web.Request) -> web.Response:
        """One model."""
        asked = request.match_info["model"]
        table = self._context.view.table
        if (route := table.find(asked)) is None:
            return self._refuse(answers.unknown_model(asked, table.nearest(asked)))
        return web.json_response(_model(asked, route))

    async def healthz(self, request: web.Request) -> web.Response:
        """Alive."""
        return web.Response(text="ok\n")

    async def readyz(self, request: web.Request) -> web.Response:
        """200 once the cluster is known, until the gateway is told to stop."""
        if self.stopping:
            return web.Response(status=503, text="stopping\n")
        if not self._context.view.synced.is_set():
            return web.Response(status=503, text="waiting for the Kubernetes API\n")
        return web.Response(text="ok\n")

    async def metrics(self, request: web.Request) -> web.Response:
        """Prometheus' text format."""
        body = self._context.metrics.render()
        return web.Response(body=body, headers={"Content-Type": metrics.CONTENT_TYPE})

    async def _wait_for_sync(self) -> bool:
        if self._unsynced >= UNSYNCED_REQUESTS:
            return False
        self._unsynced += 1
        try:
            async with asyncio.timeout(UNSYNCED_REAL_S):
                await self._context.view.synced.wait()
        except TimeoutError:
            return False
        finally:
            self._unsynced -= 1
        return True

    def _refuse(self, answer: answers.Answer) -> web.Response:
        self._context.metrics.requests.labels("", "", str(answer.status)).inc()
        return answer.to_response()

    @web.middleware
    async def _shape_errors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except answers.BadCall as error:
            return self._refuse(error.answer)
        except web.HTTPRequestEntityTooLarge:
            return self._refuse(answers.too_large(self._max_body_bytes))
        except web.HTTPNotFound:
            message = f"there is nothing at {request.method} {request.path[:200]}"
            return self._refuse(answers.Answer(404, "not_found", message))
        except web.HTTPMethodNotAllowed as error:
            message = f"{request.path[:200]} takes {' and '.join(sorted(error.allowed_methods))}"
            answer = self._refuse(answers.Answer(405, "method_not_allowed", message))
            answer.headers["Allow"] = error.headers["Allow"]
            return answer
        except (ConnectionError, web.HTTPException):
            raise
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            message = "this gateway met an error of its own; its log says more"
            return self._refuse(answers.Answer(500, "internal_error", message))


def _model(name: str, route: routing.Route) -> dict[str, object]:
    return {
        "id": name,
        "object": "model",
        "created": route.created_unix_s,
        "owned_by": "modelserve",
        "root": route.model_name,
        "parent": None,
        "max_model_len": route.max_model_length_tokens,
    }
