"""Triton's own HTTP server: v2 health and metadata, generate and infer, the extensions."""

from collections.abc import Sequence

from servelab.engine.exchange import Exchange, Handler, Response, Route
from servelab.engine.metrics import triton as metrics
from servelab.engine.replying import Reply
from servelab.engine.surfaces import fastapi, scraping
from servelab.engine.surfaces.surface import Host
from servelab.engine.surfaces.triton import (
    asking,
    extensions,
    generation,
    inferring,
    refusals,
    repository,
)
from servelab.engine.surfaces.triton.refusals import TritonError

TEXT = "text/plain"
_NO_STREAM = "Streaming is only supported if model is deployed using decoupled mode."
_NO_INFER = "HTTP end point doesn't support models with decoupled transaction policy"


class Native:
    """The routes of one server. ``decoupled``: its models may answer in several responses."""

    def __init__(
        self,
        host: Host,
        exporter: metrics.Exporter,
        models: repository.Repository,
        *,
        decoupled: bool,
    ) -> None:
        self._host = host
        self._exporter = exporter
        self._models = models
        self._decoupled = decoupled
        self._extensions = extensions.Extensions(host, exporter, models)

    def routes(self) -> Sequence[Route]:
        """All paths it knows."""
        routes = [
            Route("GET", "/metrics", self._metrics),
            Route("GET", "/v2", self._server_metadata),
            Route("GET", "/v2/health/live", _healthy),
            Route("GET", "/v2/health/ready", _healthy),
            *self._extensions.routes(),
        ]
        for path in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
            routes += [
                Route("GET", path, self._of_model(self._metadata)),
                Route("GET", f"{path}/ready", self._of_model(_healthy)),
                Route("GET", f"{path}/config", self._of_model(self._config)),
                Route("POST", f"{path}/infer", self._of_model(self._infer), aside=True),
                Route("POST", f"{path}/generate", self._of_model(self._generate), aside=True),
                Route(
                    "POST",
                    f"{path}/generate_stream",
                    self._of_model(self._generate_stream),
                    aside=True,
                ),
            ]
        return routes

    def _metrics(self, exchange: Exchange) -> None:
        exchange.respond(scraping.exposition(self._host))

    def _server_metadata(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document(repository.server_metadata()))

    def _of_model(self, handler: Handler) -> Handler:
        """The handler, for a model of the repository."""

        def handle(exchange: Exchange) -> None:
            parameters = exchange.request.parameters
            self._models.check(parameters["model"], parameters.get("version", ""))
            handler(exchange)

        return handle

    def _metadata(self, exchange: Exchange) -> None:
        model = exchange.request.parameters["model"]
        exchange.respond(fastapi.document(self._models.metadata(model)))

    def _config(self, exchange: Exchange) -> None:
        model = exchange.request.parameters["model"]
        exchange.respond(fastapi.document(self._models.config(model)))

    def _infer(self, exchange: Exchange) -> None:
        if self._decoupled:
            raise TritonError(_NO_INFER, refusals.UNSUPPORTED)
        model = self._text_model(exchange)
        asked = inferring.parse(exchange.request, model, self._models.max_batch_size)
        self._check(asked.wanted)
        self._put(exchange, inferring.Inferred(asked), model)

    def _generate(self, exchange: Exchange) -> None:
        wanted = self._wanted(exchange, stream=False)
        self._put(exchange, generation.Generated(wanted), wanted.model)

    def _generate_stream(self, exchange: Exchange) -> None:
        wanted = self._wanted(exchange, stream=True)
        self._put(exchange, generation.GeneratedStream(wanted), wanted.model)

    def _wanted(self, exchange: Exchange, *, stream: bool) -> generation.Wanted:
        model = self._text_model(exchange)
        if exchange.request.headers.get("content-encoding", "identity") not in ("", "identity"):
            raise TritonError("Unsupported content-encoding, only 'identity' is supported.")
        wanted = generation.parse(exchange.request.body, model, stream=stream)
        self._check(wanted)
        return wanted

    def _text_model(self, exchange: Exchange) -> str:
        model = exchange.request.parameters["model"]
        if not self._models.takes_text(model):
            message = f"model '{model}' takes tokens, not text: ask '{self._models.served_name}'"
            raise TritonError(message)
        return model

    def _check(self, wanted: generation.Wanted) -> None:
        """What the backend refuses once it has the request. Raises TritonError."""
        ensemble = self._models.ensemble(wanted.model)
        if wanted.streams and not self._decoupled:
            raise refusals.backend(_NO_STREAM, ensemble)
        if (told := asking.too_long(wanted.call, self._host.served)) is not None:
            name = int(self._host.name()[:8], 16)
            message = f"Executor failed process requestId {name} due to the following error: "
            reason = f"Encountered an error when fetching new request: {told}"
            raise refusals.backend(message + reason, ensemble)

    def _put(self, exchange: Exchange, reply: Reply, model: str) -> None:
        """Into the core; a full queue is the dynamic batcher's. Raises TritonError."""

        def put() -> None:
            self._host.generate(exchange, reply)
            self._exporter.attribute(reply.ids, model, round(self._host.unix_s() * 1000))

        exchange.later(put)


def _healthy(exchange: Exchange) -> None:
    exchange.respond(Response(content_type=TEXT))
