"""The routes that need no core: health, models, version, tokens; and how errors are answered."""

import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from yarl import URL

from servelab.engine.surfaces.vllm import (
    anthropic,
    bodies,
    logs,
    messages,
    protocol,
    refusals,
    responses,
)
from servelab.engine.surfaces.vllm.protocol import Served
from servelab.engine.text import vocabulary

LOGGER = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class PlainRoutes:
    """What a server can say of itself. ``created`` is Unix time in whole seconds."""

    served: Served
    model_name: str
    created: int
    health_paths: Sequence[str]

    def routes(self) -> Sequence[tuple[str, str, Handler]]:
        """Method, path, handler."""
        return (
            ("GET", "/v1/models", self._models),
            *(
                ("GET", path, self._health)
                for path in dict.fromkeys(("/health", *self.health_paths))
            ),
            ("GET", "/ping", self._health),
            ("POST", "/ping", self._health),
            ("GET", "/version", self._version),
            ("POST", "/tokenize", self._tokenize),
            ("POST", "/detokenize", self._detokenize),
            ("POST", "/v1/messages/count_tokens", self._count),
            ("GET", "/v1/responses/{id}", self._response),
            ("POST", "/v1/responses/{id}/cancel", self._response),
        )

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response()

    async def _version(self, request: web.Request) -> web.Response:
        return _json({"version": logs.VERSION})

    async def _models(self, request: web.Request) -> web.Response:
        permission = {
            "id": f"modelperm-{self.created:x}",
            "object": "model_permission",
            "created": self.created,
            "allow_create_engine": False,
            "allow_sampling": True,
            "allow_logprobs": True,
            "allow_search_indices": False,
            "allow_view": True,
            "allow_fine_tuning": False,
            "organization": "*",
            "group": None,
            "is_blocking": False,
        }
        model = {
            "id": self.served.name,
            "object": "model",
            "created": self.created,
            "owned_by": "vllm",
            "root": self.model_name,
            "parent": None,
            "max_model_len": self.served.max_model_tokens,
            "permission": [permission],
        }
        return _json({"object": "list", "data": [model]})

    async def _tokenize(self, request: web.Request) -> web.Response:
        document = await self._document(request)
        wanted = protocol.tokenize(document)
        protocol.check_model(wanted.model, self.served)
        if isinstance(wanted, bodies.TokenizePrompt):
            tokens = vocabulary.encode(wanted.prompt)
        else:
            tokens = vocabulary.encode_chat(messages.text(each) for each in document["messages"])
        texts = [vocabulary.decode([token]) for token in tokens]
        answer = {
            "count": len(tokens),
            "max_model_len": self.served.max_model_tokens,
            "tokens": tokens,
            "token_strs": texts if wanted.return_token_strs else None,
        }
        return _json(answer)

    async def _detokenize(self, request: web.Request) -> web.Response:
        body = protocol.validate(bodies.DetokenizeRequest, await self._document(request))
        protocol.check_model(body.model, self.served)
        return _json({"prompt": vocabulary.decode(body.tokens)})

    async def _document(self, request: web.Request) -> Any:
        return protocol.load(await request.read(), request.headers.get("Content-Type", ""))

    async def _count(self, request: web.Request) -> web.Response:
        raw, content_type = await request.read(), request.headers.get("Content-Type", "")
        return _json(anthropic.count(raw, content_type, self.served))

    async def _response(self, request: web.Request) -> web.Response:
        raise responses.unknown(request.match_info["id"])


def _json(document: object) -> web.Response:
    return web.Response(body=json.dumps(document).encode(), content_type="application/json")


@web.middleware
async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Errors as the real server words them: OpenAI's shape for requests, a detail for routes."""
    try:
        return await handler(request)
    except refusals.Refusal as refusal:
        return _refuse(refusal)
    except web.HTTPException as error:
        bare = request.rel_url.raw_path.rstrip("/")
        if error.status == 404 and await _is_route(request, bare):
            return web.Response(status=307, headers={"Location": bare})
        # The real router names the methods of the first route of a path only.
        allowed = error.headers.get("Allow", "").split(",")[0]
        headers = {"Allow": allowed} if allowed else {}
        detail = {"detail": error.reason}
        response = _json(detail)
        response.set_status(error.status)
        response.headers.update(headers)
        return response
    except ConnectionResetError:
        raise
    except Exception:
        LOGGER.exception("%s %s failed", request.method, request.path)
        return _refuse(refusals.internal())


async def _is_route(request: web.Request, path: str) -> bool:
    """Whether a path that ends with a slash would be one without it."""
    if path in ("", request.rel_url.raw_path):
        return False
    match = await request.app.router.resolve(request.clone(rel_url=URL(path, encoded=True)))
    return match.http_exception is None or match.http_exception.status == 405


def _refuse(refusal: refusals.Refusal) -> web.Response:
    return web.Response(status=refusal.status, body=refusal.body(), content_type="application/json")
