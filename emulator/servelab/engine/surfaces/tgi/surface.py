"""The outside of TGI's router: its routes, and how it answers what has none."""

from collections.abc import Callable, Sequence
from typing import Any

from modelserve.errors import ModelServeError
from servelab.engine.core.intake import QueueFull
from servelab.engine.exchange import Exchange, Handler, Request, Response, Route
from servelab.engine.metrics import tgi as metrics
from servelab.engine.replying import Reply
from servelab.engine.surfaces import events
from servelab.engine.surfaces.surface import Host
from servelab.engine.surfaces.tgi import (
    asking,
    bodies,
    limits,
    openai,
    origins,
    plain,
    refusals,
    replies,
    serde,
    tools,
)
from servelab.engine.surfaces.tgi.asking import Asked, Input
from servelab.engine.surfaces.tgi.refusals import Refusal, Rejection
from servelab.engine.text import writing

Ask = Callable[[], Asked]
Build = Callable[[Asked], Reply]


class TgiSurface:
    """TGI 3.3."""

    server = None

    def __init__(self, host: Host) -> None:
        self._host = host
        self._limits = limits.of(host.spec)
        exporter = host.exporter
        if not isinstance(exporter, metrics.Exporter):
            raise TypeError("TGI's surface counts with TGI's exporter")
        self._exporter = exporter
        self._plain = plain.PlainRoutes(host, self._limits)
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
            *(Route("POST", path, self._guarded(handler)) for path, handler in asked),
            *self._plain.routes(),
            Route("POST", "/chat_tokenize", self._limited(self._chat_tokenize)),
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
        return origins.crossed(self._refusal(error).response())

    def unready(self, request: Request) -> Response:
        """It does not listen while it loads."""
        return Response(503, content_type=None)

    def _refusal(self, error: Exception) -> Refusal:
        if isinstance(error, Refusal):
            return error
        if isinstance(error, QueueFull):
            return refusals.overloaded()
        if isinstance(error, ModelServeError):
            return refusals.invalid(str(error))
        return refusals.failed("the engine failed on this request")

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
        self._exporter.count_arrival()
        given = Input(body["inputs"])
        answered = self._exporter.count_answered
        if stream:
            ask = self._ask([given], body["parameters"], stream=True)
            characters = len(given.text)

            def refuse(refusal: Refusal) -> None:
                self._refuse_stream(exchange, characters, refusal.event())

            self._start(exchange, ask, lambda a: replies.TokenStream(a, answered), refuse)
        else:
            ask = self._ask([given], body["parameters"])
            self._start(exchange, ask, lambda a: replies.Generated(a, answered, listed=listed))

    def _chat(self, exchange: Exchange) -> None:
        self._put_chat(exchange, self._read(bodies.CHAT, exchange))

    def _put_chat(self, exchange: Exchange, body: dict[str, Any]) -> None:
        self._exporter.count_arrival()
        given = self._templated(body)
        self._exporter.count_arrival()
        model = body["model"] if body["model"] not in (None, "tgi") else self._plain.model_id
        head = openai.Head(model, int(self._host.unix_s()))
        answered, logprobs = self._exporter.count_answered, bool(body["logprobs"])
        parameters, stream = asking.chat_parameters(body), body["stream"]
        offered = tools.used(body)
        calls = tools.calls(body, offered)
        write = tools.written(offered) if calls else None
        if not calls:
            given = asking.templated(body["messages"])
        ask = self._ask([given], parameters, stream=stream, chat=True, write=write)

        def whole(asked: Asked) -> Reply:
            return openai.Chat(asked, head, answered, logprobs=logprobs, calls=calls)

        def streamed(asked: Asked) -> Reply:
            wanted = body["stream_options"]["include_usage"]
            call_id = tools.next_id(body["messages"]) or self._host.name()
            deltas = tools.Deltas(call_id) if calls else None
            return openai.ChatStream(
                *(asked, head, answered),
                logprobs=logprobs,
                include_usage=wanted,
                deltas=deltas,
            )

        if not stream:
            self._start(exchange, ask, whole)
            return
        self._start(exchange, ask, streamed, self._openai_refuse(exchange, len(given.text)))

    def _completion(self, exchange: Exchange) -> None:
        self._put_completion(exchange, self._read(bodies.COMPLETION, exchange))

    def _put_completion(self, exchange: Exchange, body: dict[str, Any]) -> None:
        self._exporter.count_arrival()
        if body["suffix"] is not None:
            message = "Suffix is not supported and can be achieved by preprocessing the prompt."
            self._fail(Refusal(message, "suffix not supported", label="validation"))
        most = self._limits.client_batch_size
        if len(body["prompt"]) > most:
            message = f"Number of prompts exceeds the maximum allowed batch size of {most}"
            self._fail(Refusal(message, "batch size exceeded", label="validation"))
        given = [Input(prompt) for prompt in body["prompt"]]
        for _ in given:
            self._exporter.count_arrival()
        head = openai.Head(self._plain.model_id, int(self._host.unix_s()))
        answered, stream = self._exporter.count_answered, body["stream"]
        ask = self._ask(given, asking.completion_parameters(body), stream=stream)
        if stream:
            refuse = self._openai_refuse(exchange, sum(len(each.text) for each in given))
            self._start(exchange, ask, lambda a: openai.CompletionStream(a, head, answered), refuse)
        else:
            self._start(exchange, ask, lambda a: openai.Completion(a, head, answered))

    def _invocation(self, exchange: Exchange) -> None:
        body = self._read(bodies.INVOCATION, exchange)
        if "inputs" in body:
            self._put_compatible(exchange, body)
        elif "messages" in body:
            self._put_chat(exchange, body)
        else:
            self._put_completion(exchange, body)

    def _chat_tokenize(self, exchange: Exchange) -> None:
        body = self._read(bodies.CHAT, exchange)
        self._exporter.count_arrival()
        exchange.respond(plain.chat_tokens(self._templated(body)))

    def _templated(self, body: dict[str, Any]) -> Input:
        if body["response_format"] is not None and body["tools"] is not None:
            raise refusals.tool("Grammar and tools are mutually exclusive")
        return asking.templated(body["messages"], tools.prompted(body, tools.used(body)))

    def _read(self, kind: serde.Kind, exchange: Exchange) -> dict[str, Any]:
        request = exchange.request
        body: dict[str, Any] = serde.read(kind, request.body, request.content_type)
        return body

    def _ask(
        self,
        given: Sequence[Input],
        parameters: dict[str, Any],
        *,
        stream: bool = False,
        chat: bool = False,
        write: writing.Write | None = None,
    ) -> Ask:
        seed = int(self._host.name()[:8], 16)

        def ask() -> Asked:
            wanted = len(given) * (1 if stream else max(1, parameters["best_of"] or 1))
            if self._host.open_requests + wanted > self._limits.concurrent:
                raise refusals.overloaded()
            return asking.check(
                *(given, parameters, self._limits),
                seed=seed,
                chat=chat,
                stream=stream,
                write=write,
            )

        return ask

    def _start(
        self,
        exchange: Exchange,
        ask: Ask,
        build: Build,
        refuse: Callable[[Refusal], None] | None = None,
    ) -> None:
        """Put a request into the core. In a stream a refusal is an event of it."""
        try:
            asked = ask()
            self._host.generate(exchange, build(asked))
        except Refusal as refusal:
            self._exporter.count_failure(refusal.label)
            if refuse is None:
                raise
            refuse(refusal)
        except QueueFull as full:
            if refuse is None:
                raise
            refuse(self._refusal(full))
        else:
            for prompt in asked.call.prompts:
                limit = asked.call.limit_tokens(prompt, self._host.served)
                self._exporter.count_validated(prompt.tokens, min(limit, asking.CHUNK_TOKENS))

    def _fail(self, refusal: Refusal) -> None:
        self._exporter.count_failure(refusal.label)
        raise refusal

    def _openai_refuse(self, exchange: Exchange, characters: int) -> Callable[[Refusal], None]:
        def refuse(refusal: Refusal) -> None:
            self._refuse_stream(exchange, characters, refusal.openai_event() + events.DONE)

        return refuse

    def _refuse_stream(self, exchange: Exchange, characters: int, events: bytes) -> None:
        exchange.begin(replies.stream_head(characters))
        exchange.write(events)
        exchange.end()
