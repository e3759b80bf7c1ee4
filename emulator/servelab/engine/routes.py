"""The routes that need no core: health, models, version, tokens; and how errors are answered."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from aiohttp import web

from servelab.engine import logs, protocol, refusals, vocabulary

LOGGER = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class PlainRoutes:
    """What a server can say of itself. ``created`` is Unix time in whole seconds."""

    served_name: str
    model_name: str
    max_model_tokens: int
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
        )

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response()

    async def _version(self, request: web.Request) -> web.Response:
        return web.json_response({"version": logs.VERSION})

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
            "id": self.served_name,
            "object": "model",
            "created": self.created,
            "owned_by": "vllm",
            "root": self.model_name,
            "parent": None,
            "max_model_len": self.max_model_tokens,
            "permission": [permission],
        }
        return web.json_response({"object": "list", "data": [model]})

    async def _tokenize(self, request: web.Request) -> web.Response:
        body = protocol.parse(protocol.TokenizeRequest, await request.read(), request.content_type)
        if body.messages is not None:
            contents = [protocol.content(message) for message in body.messages]
            tokens = vocabulary.encode_chat(contents)
        else:
            tokens = vocabulary.encode(body.prompt or "")
        answer = {
            "count": len(tokens),
            "max_model_len": self.max_model_tokens,
            "tokens": tokens,
            "token_strs": None,
        }
        return web.json_response(answer)

    async def _detokenize(self, request: web.Request) -> web.Response:
        kind = protocol.DetokenizeRequest
        body = protocol.parse(kind, await request.read(), request.content_type)
        return web.json_response({"prompt": vocabulary.decode(body.tokens)})


@web.middleware
async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Errors as the real server words them: OpenAI's shape for requests, a detail for routes."""
    try:
        return await handler(request)
    except refusals.Refusal as refusal:
        return _refuse(refusal)
    except web.HTTPException as error:
        headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
        detail = {"detail": error.reason}
        return web.json_response(detail, status=error.status, headers=headers)
    except ConnectionResetError:
        raise
    except Exception:
        LOGGER.exception("%s %s failed", request.method, request.path)
        return _refuse(refusals.internal())


def _refuse(refusal: refusals.Refusal) -> web.Response:
    return web.Response(status=refusal.status, body=refusal.body(), content_type="application/json")
