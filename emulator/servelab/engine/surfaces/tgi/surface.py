"""The outside of TGI's router: its routes, and how it answers what has none."""

from collections.abc import Sequence
from typing import Any

from servelab.engine.exchange import Exchange, Handler, Request, Response, Route
from servelab.engine.metrics import tgi as metrics
from servelab.engine.surfaces.surface import Host
from servelab.engine.surfaces.tgi import (
    asking,
    bodies,
    chatting,
    limits,
    openai,
    origins,
    plain,
    refusals,
    replies,
    serde,
    starting,
)
from servelab.engine.surfaces.tgi.asking import Input
from servelab.engine.surfaces.tgi.refusals import Refusal, Rejection


class TgiSurface:
    """TGI 3.3."""

    server = None
    vary = None

    def __init__(self, host: Host) -> None:
        self._host = host
        self._limits = limits.of(host.spec)
        exporter = host.exporter
        if not isinstance(exporter, metrics.Exporter):
            raise TypeError("TGI's surface counts with TGI's exporter")
        self._exporter = exporter
        self._plain = plain.PlainRoutes(host, self._limits)
        self._starter = starting.Starter(host, self._limits, exporter)
        self._chats = chatting.Chats(host, exporter, self._starter, self._plain.model_id)
        asked: tuple[tuple[str, Handler], ...] = (
            ("/", self._compatible),
            ("/generate", self._generate),
            ("/generate_stream", self._generate_stream),
            ("/v1/chat/completions", self._chat),
            ("/v1/completions", self._completion),
            ("/invocations", self._invocation),
            ("/tokenize", self._plain.tokenize),
        )
        self._routes = (
            *(Route("POST", path, self._guarded(handler), aside=True) for path, handler in asked),
            *self._plain.routes(),
            Route("POST", "/chat_tokenize", self._limited(self._chat_tokenize), aside=True),
        )

    def routes(self) -> Sequence[Route]:
        """All paths it knows."""
        return self._routes

    def not_found(self, request: Request) -> Response:
        """An empty answer."""
        return origins.preflight(request) or origins.crossed(Response(404, content_type=None))

    def wrong_method(self, request: Request, allowed: Sequence[str]) -> Response:
        """An empty answer that names the methods."""
        response = Response(405, content_type=None, headers=(("allow", ",".join(allowed)),))
        return origins.preflight(request) or origins.crossed(response)

    def refused(self, request: Request, error: Exception) -> Response:
        """An error of the router, or what axum says of a body."""
        if isinstance(error, Rejection | Refusal):
            return origins.crossed(error.response())
        return origins.crossed(starting.refusal_of(error).response())

    def unready(self, request: Request) -> Response:
        """It does not listen while it loads."""
        return Response(503, content_type=None)

    def _limited(self, handler: Handler) -> Handler:
        def handle(exchange: Exchange) -> None:
            if len(exchange.request.body) > self._limits.payload_bytes:
                raise refusals.too_large()
            handler(exchange)

        return handle

    def _guarded(self, handler: Handler) -> Handler:
        """The handler behind the key, if the router was given one."""
        limited, key = self._limited(handler), f"bearer {self._limits.api_key}".lower()

        def handle(exchange: Exchange) -> None:
            given = exchange.request.headers.get("authorization", "").lower()
            if self._limits.api_key and given != key:
                exchange.respond(origins.crossed(Response(401, content_type=None)))
            else:
                limited(exchange)

        return handle

    def _compatible(self, exchange: Exchange) -> None:
        self._put_compatible(exchange, self._read(bodies.COMPATIBLE, exchange))

    def _put_compatible(self, exchange: Exchange, body: dict[str, Any]) -> None:
        parameters = body["parameters"]
        if parameters["return_full_text"] is None:
            # So it is for models whose task on the hub is to generate text.
            parameters["return_full_text"] = True
        self._put(exchange, body, stream=body["stream"], listed=True)

    def _generate(self, exchange: Exchange) -> None:
        self._put(exchange, self._read(bodies.GENERATE, exchange), stream=False)

    def _generate_stream(self, exchange: Exchange) -> None:
        self._put(exchange, self._read(bodies.GENERATE, exchange), stream=True)

    def _put(
        self, exchange: Exchange, body: dict[str, Any], *, stream: bool, listed: bool = False
    ) -> None:
        exchange.later(self._exporter.count_arrival)
        given = Input(body["inputs"])
        answered = self._exporter.count_answered
        if stream:
            ask = self._starter.ask([given], body["parameters"], stream=True)
            characters = len(given.text)

            def refuse(refusal: Refusal) -> None:
                self._starter.refuse_stream(exchange, characters, refusal.event())

            self._starter.start(exchange, ask, lambda a: replies.TokenStream(a, answered), refuse)
        else:
            ask = self._starter.ask([given], body["parameters"])
            self._starter.start(
                exchange, ask, lambda a: replies.Generated(a, answered, listed=listed)
            )

    def _chat(self, exchange: Exchange) -> None:
        self._chats.put(exchange, self._read(bodies.CHAT, exchange))

    def _completion(self, exchange: Exchange) -> None:
        self._put_completion(exchange, self._read(bodies.COMPLETION, exchange))

    def _put_completion(self, exchange: Exchange, body: dict[str, Any]) -> None:
        exchange.later(self._exporter.count_arrival)
        if body["suffix"] is not None:
            message = "Suffix is not supported and can be achieved by preprocessing the prompt."
            self._starter.fail(
                exchange, Refusal(message, "suffix not supported", label="validation")
            )
        most = self._limits.client_batch_size
        if len(body["prompt"]) > most:
            message = f"Number of prompts exceeds the maximum allowed batch size of {most}"
            self._starter.fail(
                exchange, Refusal(message, "batch size exceeded", label="validation")
            )
        given = [Input(prompt) for prompt in body["prompt"]]
        for _ in given:
            exchange.later(self._exporter.count_arrival)
        head = openai.Head(self._plain.model_id, int(self._host.unix_s()))
        answered, stream = self._exporter.count_answered, body["stream"]
        ask = self._starter.ask(given, asking.completion_parameters(body), stream=stream)
        if stream:
            refuse = self._starter.openai_refuse(exchange, sum(len(each.text) for each in given))
            self._starter.start(
                exchange, ask, lambda a: openai.CompletionStream(a, head, answered), refuse
            )
        else:
            self._starter.start(exchange, ask, lambda a: openai.Completion(a, head, answered))

    def _invocation(self, exchange: Exchange) -> None:
        body = self._read(bodies.INVOCATION, exchange)
        if "inputs" in body:
            self._put_compatible(exchange, body)
        elif "messages" in body:
            self._chats.put(exchange, body)
        else:
            self._put_completion(exchange, body)

    def _chat_tokenize(self, exchange: Exchange) -> None:
        body = self._read(bodies.CHAT, exchange)
        exchange.later(self._exporter.count_arrival)
        exchange.respond(plain.chat_tokens(chatting.templated(body)))

    def _read(self, kind: serde.Kind, exchange: Exchange) -> dict[str, Any]:
        request = exchange.request
        body: dict[str, Any] = serde.read(kind, request.body, request.content_type)
        return body
