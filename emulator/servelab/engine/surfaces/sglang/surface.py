"""The outside of SGLang's HTTP server, which is FastAPI on uvicorn."""

import dataclasses
from collections.abc import Callable, Sequence

from servelab.engine import exchange as exchanges
from servelab.engine.core.intake import QueueFull
from servelab.engine.exchange import Exchange, Request, Response, Route
from servelab.engine.metrics import sglang as metrics
from servelab.engine.replying import Reply
from servelab.engine.surfaces import events, fastapi, refusing
from servelab.engine.surfaces.refusing import Refusal, Shape
from servelab.engine.surfaces.sglang import (
    asking,
    bodies,
    chunks,
    control,
    generating,
    info,
    loads,
    making,
    messages,
    native,
    refusals,
    replies,
    responding,
)
from servelab.engine.surfaces.sglang.asking import Asked
from servelab.engine.surfaces.surface import Host
from servelab.engine.text import encoding

NATIVE_PATHS = frozenset({"/generate", "/encode", "/classify"})
NO_EMBEDDINGS = (
    "This model does not appear to be an embedding model by default. Please add `--is-embedding` "
    "when launching the server or try another model."
)


class SglangSurface(fastapi.Application):
    """SGLang 0.5."""

    def __init__(self, host: Host) -> None:
        self._host = host
        options = dict(host.spec.options)
        exporter = host.exporter
        self._exporter = exporter if isinstance(exporter, metrics.Exporter) else None
        self._control = control.Control(host, self._exporter)
        self._telling = making.Telling(
            host.name,
            host.unix_s,
            self._taken,
            cache_report="enable-cache-report" in options,
            measured="enable-metrics" in options,
        )
        self._routes = tuple(self._counted(route) for route in self._table())

    def _table(self) -> Sequence[Route]:
        chat, native_routes = ("/v1/chat/completions", "/invocations"), ("POST", "PUT")
        return (
            *(Route("POST", path, self._chat, aside=True) for path in chat),
            Route("POST", "/v1/completions", self._completion, aside=True),
            *(Route(each, "/generate", self._generate, aside=True) for each in native_routes),
            *(Route(method, "/encode", self._no_encoding) for method in native_routes),
            *(Route(method, "/classify", self._no_encoding) for method in native_routes),
            Route("POST", "/v1/embeddings", self._no_embeddings),
            *(Route("POST", f"{at}/tokenize", self._tokenize, aside=True) for at in ("", "/v1")),
            *(
                Route("POST", f"{at}/detokenize", self._detokenize, aside=True)
                for at in ("", "/v1")
            ),
            *responding.Responses(self._host, self._telling, self._control).routes(),
            *self._control.routes(),
            *info.Info(self._host, self._control).routes(),
            loads.Loads(self._host).route(),
        )

    def not_found(self, request: Request) -> Response:
        """A detail, or the way to the path without its last slash."""
        answer = super().not_found(request)
        if answer.status == 404:
            self._astray(request, 404)
        return answer

    def wrong_method(self, request: Request, allowed: Sequence[str]) -> Response:
        """A detail; FastAPI's router names the methods of the path's first route only."""
        many = request.path in NATIVE_PATHS or request.path in control.MANY
        methods = ", ".join(dict.fromkeys(allowed)) if many else allowed[0]
        self._astray(request, 405)
        return super().wrong_method(request, allowed)._replace(headers=(("Allow", methods),))

    def _astray(self, request: Request, status: int) -> None:
        if self._exporter is not None:
            self._exporter.http.astray(request.path, request.method, status)

    def refused(self, request: Request, error: Exception) -> Response:
        """A refusal in the shape of its route."""
        refusal = refusing.of(error, refusals.queue_full())
        if request.path.startswith(responding.PATH):
            return refusals.of_responses(refusal).response()
        if request.path in NATIVE_PATHS and refusal.kind != "503":
            refusal = refusals.native(refusal)
        return refusal.response()

    def _taken(self, ids: Sequence[str], stream: bool) -> None:
        if self._exporter is not None:
            self._exporter.taken(ids, stream=stream)

    def _counted(self, route: Route) -> Route:
        """All routes answer from when the server listens, which is before its warm-up."""
        handler = route.handler
        if self._exporter is not None:
            handler = self._exporter.http.counted(route.path, handler, self.refused)
        return dataclasses.replace(route, handler=handler, while_loading=handler)

    def _chat(self, exchange: Exchange) -> None:
        request = exchange.request
        body = asking.openai(bodies.ChatRequest, request.body, _kind(request))
        asked = asking.chat(body, self._host.served)
        self._answer(exchange, asked, replies.chat(asked, self._telling), self._chat_full)

    def _completion(self, exchange: Exchange) -> None:
        request = exchange.request
        body = asking.openai(bodies.CompletionRequest, request.body, _kind(request))
        asked = asking.completion(body, self._host.served)
        self._answer(exchange, asked, replies.completion(asked, self._telling), self._text_full)

    def _generate(self, exchange: Exchange) -> None:
        request = exchange.request
        body = native.parse(request)
        try:
            asked = native.asked(body, self._host.served)
        except Refusal as refusal:
            if not body.stream or refusal.shape is not Shape.NESTED:
                raise
            _stream(exchange, generating.refused(str(refusal), refusal.status))
            return
        self._answer(exchange, asked, generating.reply(asked, self._telling), self._native_full)

    def _answer(
        self,
        exchange: Exchange,
        asked: Asked,
        reply: Reply,
        full: Callable[[Asked], bytes],
    ) -> None:
        def generate() -> None:
            try:
                self._host.generate(exchange, reply)
            except QueueFull:
                # A stream is open already when the real scheduler says no.
                if not asked.call.stream:
                    raise
                _stream(exchange, full(asked))

        self._control.start(exchange, generate)

    def _chat_full(self, asked: Asked) -> bytes:
        return _full() + self._usage(asked, events.CHAT_CHUNK)

    def _text_full(self, asked: Asked) -> bytes:
        return _full() + self._usage(asked, events.TEXT)

    def _usage(self, asked: Asked, kind: str) -> bytes:
        if not asked.call.include_usage:
            return b""
        cached = 0 if self._telling.cache_report else None
        head = events.Completion(kind, self._host.name(), int(self._host.unix_s()), asked.model)
        return chunks.usage_event(head, chunks.usage(0, 0, cached))

    def _native_full(self, asked: Asked) -> bytes:
        return generating.queue_full(self._host.name(), self._host.unix_s())

    def _no_embeddings(self, exchange: Exchange) -> None:
        request = exchange.request
        asking.openai(bodies.EmbeddingRequest, request.body, _kind(request))
        raise Refusal(NO_EMBEDDINGS)

    def _no_encoding(self, exchange: Exchange) -> None:
        native.parse(exchange.request)
        raise Refusal(NO_EMBEDDINGS)

    def _tokenize(self, exchange: Exchange) -> None:
        request = exchange.request
        body = asking.openai(bodies.TokenizeRequest, request.body, _kind(request))
        tokens: list[int] | list[list[int]]
        if body.messages is not None:
            tokens = messages.tokens(body.messages)
        elif isinstance(body.prompt, str):
            tokens = encoding.encode(body.prompt)
        else:
            lists = [encoding.encode(text) for text in body.prompt or ()]
            answer = {"tokens": lists, "count": [len(each) for each in lists]}
            exchange.respond(fastapi.document(answer | self._limit()))
            return
        answer = {"tokens": tokens, "count": len(tokens)}
        exchange.respond(fastapi.document(answer | self._limit()))

    def _limit(self) -> dict[str, int]:
        return {"max_model_len": self._host.served.max_model_tokens}

    def _detokenize(self, exchange: Exchange) -> None:
        request = exchange.request
        body = asking.openai(bodies.DetokenizeRequest, request.body, _kind(request))
        tokens = body.tokens
        if not tokens:
            text: str | list[str] = ""
        elif isinstance(tokens[0], int):
            text = encoding.decode([each for each in tokens if isinstance(each, int)])
        else:
            text = [encoding.decode(each) for each in tokens if isinstance(each, list)]
        exchange.respond(fastapi.document({"text": text}))


def _kind(request: Request) -> str:
    return request.content_type


def _full() -> bytes:
    return chunks.streamed_error(refusals.QUEUE_FULL, "SERVICE_UNAVAILABLE", 503)


def _stream(exchange: Exchange, told: bytes) -> None:
    exchange.begin(Response(content_type=exchanges.EVENT_STREAM))
    exchange.write(told + events.DONE)
    exchange.end()
