"""The outside of vLLM's OpenAI-compatible server, which is FastAPI on uvicorn."""

import json
from collections.abc import Callable, Sequence

from modelserve.errors import ModelServeError
from servelab.engine import exchange as exchanges
from servelab.engine.calls import Call
from servelab.engine.core.intake import QueueFull, TooLarge
from servelab.engine.exchange import Exchange, Request, Response, Route
from servelab.engine.replying import Reply
from servelab.engine.surfaces import fastapi, pages
from servelab.engine.surfaces.surface import Host
from servelab.engine.surfaces.vllm import (
    anthropic,
    anthropic_replies,
    backends,
    batches,
    bodies,
    chunks,
    decisions,
    embeddings,
    failing,
    generative,
    openapi,
    protocol,
    reading,
    refusals,
    replies,
    responses,
    responses_replies,
    routes,
    tools,
)

_PREFLIGHT = (
    (
        "vary",
        "Origin, Access-Control-Request-Method, Access-Control-Request-Headers, "
        "Access-Control-Request-Private-Network",
    ),
    ("access-control-allow-methods", "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT, QUERY"),
    ("access-control-max-age", "600"),
)


class VllmSurface(fastapi.Application):
    """vLLM 0.33."""

    vary = "Origin"  # as its answers would, were pages of elsewhere let in

    def __init__(self, host: Host) -> None:
        self._host = host
        self._served = host.served
        self._backends = backends.Backends()
        generating = (
            Route("POST", "/v1/chat/completions", self._chat, aside=True),
            Route("POST", "/v1/chat/completions/batch", self._batch, aside=True),
            Route("POST", "/v1/completions", self._completion, aside=True),
            Route("POST", "/v1/messages", self._messages, aside=True),
            Route("POST", "/v1/responses", self._responses, aside=True),
            Route("POST", "/invocations", self._invocation, aside=True),
            Route("POST", "/generative_scoring", self._scoring, aside=True),
        )
        # A model is run to generate or to pool, never for both.
        plain = routes.PlainRoutes(host)
        told = (
            *(embeddings.routes(host) or (*generating, *plain.generating())),
            *plain.routes(),
            *decisions.routes(),
        )
        self._routes = (*told, *pages.routes(lambda: openapi.document(told)))

    def not_found(self, request: Request) -> Response:
        return _disallowed(request) or super().not_found(request)

    def wrong_method(self, request: Request, allowed: Sequence[str]) -> Response:
        return _disallowed(request) or super().wrong_method(request, allowed)

    def refused(self, request: Request, error: Exception) -> Response:
        """OpenAI's shape of an error, or Anthropic's."""
        refusal = self._refusal(error)
        words = request.path == "/v1/messages" and refusal.kind != refusals.SCHEMA
        if words and not isinstance(refusal, anthropic.Refused):
            refusal = anthropic.translated(refusal)
        return Response(refusal.status, refusal.body())

    def _refusal(self, error: Exception) -> refusals.Refusal:
        if isinstance(error, refusals.Refusal):
            return error
        if isinstance(error, QueueFull):
            return refusals.queue_full(self._host.spec.config.queue_limit or 0)
        if isinstance(error, ModelServeError):
            # Only a request that fits nowhere has its prompt to blame.
            too_large = isinstance(error, TooLarge)
            return refusals.Refusal(str(error), param="input_tokens" if too_large else None)
        return refusals.internal()

    def _chat(self, exchange: Exchange) -> None:
        request = exchange.request
        call = protocol.parse_chat(request.body, request.content_type, self._served)
        self._answer(exchange, self._head(exchange, "chatcmpl-", call), call)

    def _batch(self, exchange: Exchange) -> None:
        request = exchange.request
        call = batches.parse(request.body, request.content_type, self._served)
        call = self._backends.check(call)
        reply = batches.Reply(self._head(exchange, "chatcmpl-", call), call)
        self._generate(exchange, reply, lambda refusal: refusal)

    def _scoring(self, exchange: Exchange) -> None:
        self._host.generate(exchange, generative.reply(exchange.request, self._host))

    def _completion(self, exchange: Exchange) -> None:
        request = exchange.request
        call = protocol.parse_completion(request.body, request.content_type, self._served)
        self._answer(exchange, self._head(exchange, "cmpl-", call), call)

    def _invocation(self, exchange: Exchange) -> None:
        """SageMaker's way in: a chat if it can be one, else a text completion, of any model."""
        asked = reading.load(exchange.request.body, exchange.request.content_type)
        if isinstance(asked, dict):
            asked.pop("model", None)
        raw = json.dumps(asked).encode()
        if reading.fits(bodies.ChatRequest, asked):
            call = protocol.parse_any_chat(raw, exchanges.JSON, self._served)
            self._answer(exchange, self._head(exchange, "chatcmpl-", call), call)
        elif reading.fits(bodies.CompletionRequest, asked):
            call = protocol.parse_completion(raw, exchanges.JSON, self._served)
            self._answer(exchange, self._head(exchange, "cmpl-", call), call)
        else:
            raise refusals.Refusal("This is neither a chat nor a text completion.")

    def _answer(self, exchange: Exchange, head: chunks.Head, call: Call) -> None:
        call = self._backends.check(call)
        self._generate(exchange, replies.reply(head, call), lambda refusal: refusal)

    def _generate(
        self,
        exchange: Exchange,
        reply: Reply,
        told: Callable[[refusals.Refusal], refusals.Refusal],
    ) -> None:
        """Have it answered, or say that it fails, with the refusal as it is ``told`` here."""
        call = reply.call
        if call.late is not None:
            failing.late(exchange, reply, told(self._refusal(call.late)))
            return
        if call.stuck:
            reply = failing.instead(reply, told(refusals.internal()))
        self._host.generate(exchange, reply)

    def _messages(self, exchange: Exchange) -> None:
        request = exchange.request
        call = anthropic.parse(request.body, request.content_type, self._served)
        call = self._backends.check(call)
        head = self._head(exchange, "chatcmpl-", call)
        self._generate(exchange, anthropic_replies.reply(head, call), anthropic.translated)

    def _responses(self, exchange: Exchange) -> None:
        request = exchange.request
        call, fields = responses.parse(request.body, request.content_type, self._served)
        call = self._backends.check(call)
        head = chunks.Head(
            f"resp_{self._host.name()}",
            int(self._host.unix_s()),
            self._served.name,
            call.chat,
            tools=tools.parser(self._served),
        )
        self._generate(exchange, responses_replies.reply(head, call, fields), refusals.cut)

    def _head(self, exchange: Exchange, prefix: str, call: Call) -> chunks.Head:
        name = exchange.request.headers.get("x-request-id") or self._host.name()
        return chunks.Head(
            prefix + name,
            int(self._host.unix_s()),
            self._served.name,
            call.chat,
            call.role,
            tools.parser(self._served),
        )


def _disallowed(request: Request) -> Response | None:
    """The answer to a browser that asks whether a page of elsewhere may come: by default, none."""
    asks = "origin" in request.headers and "access-control-request-method" in request.headers
    if request.method != "OPTIONS" or not asks:
        return None
    headers: tuple[tuple[str, str], ...] = _PREFLIGHT
    wanted = request.headers.get("access-control-request-headers")
    if wanted is not None:
        headers = (*headers, ("access-control-allow-headers", wanted))
    text = "text/plain; charset=utf-8"
    return Response(400, b"Disallowed CORS origin", text, headers)
