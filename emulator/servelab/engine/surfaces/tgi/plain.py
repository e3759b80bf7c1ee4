"""The routes that need no core: health, info, models, metrics, tokens."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from servelab.engine.exchange import Exchange, Response, Route
from servelab.engine.surfaces import scraping
from servelab.engine.surfaces.surface import Host
from servelab.engine.surfaces.tgi import bodies, limits, origins, serde, tokens
from servelab.engine.surfaces.tgi.asking import Input
from servelab.engine.surfaces.tgi.limits import Limits
from servelab.engine.text import encoding


def json(document: object) -> Response:
    """A document."""
    return origins.crossed(Response(200, tokens.compact(document)))


def chat_tokens(given: Input) -> Response:
    """A chat in its template, and the tokens of that."""
    told = tokens.simple(given.text, given.ids)
    return json({"tokenize_response": told, "templated_text": given.text})


@dataclass(frozen=True, slots=True)
class PlainRoutes:
    """What a router can say of itself."""

    host: Host
    limits: Limits

    @property
    def model_id(self) -> str:
        """The model's name on the hub."""
        return self.host.spec.model_name

    def routes(self) -> Sequence[Route]:
        """Method, path, handler."""
        paths = (
            *((path, self._health) for path in ("/", "/health", "/ping")),
            ("/info", self._info),
            ("/metrics", self._metrics),
            ("/v1/models", self._models),
        )
        methods = ("GET", "HEAD")  # axum answers HEAD wherever it answers GET
        return [Route(method, path, handler) for path, handler in paths for method in methods]

    def tokenize(self, exchange: Exchange) -> None:
        """A text's tokens."""
        request = exchange.request
        body = serde.read(bodies.GENERATE, request.body, request.content_type)
        text = body["inputs"]
        exchange.respond(json(tokens.simple(text, encoding.encode(text))))

    def _health(self, exchange: Exchange) -> None:
        exchange.respond(origins.crossed(Response(content_type=None)))

    def _metrics(self, exchange: Exchange) -> None:
        exchange.respond(origins.crossed(scraping.exposition(self.host)))

    def _models(self, exchange: Exchange) -> None:
        model = {"id": self.model_id, "object": "model", "created": 0, "owned_by": self.model_id}
        exchange.respond(json({"object": "list", "data": [model]}))

    def _info(self, exchange: Exchange) -> None:
        told = self.limits
        document = {
            "model_id": self.model_id,
            # The hub's commit is not known here: a digest of the name, of the same form.
            "model_sha": hashlib.sha1(self.model_id.encode(), usedforsecurity=False).hexdigest(),
            "model_pipeline_tag": "text-generation",
            "max_concurrent_requests": told.concurrent,
            "max_best_of": told.best_of,
            "max_stop_sequences": told.stop_sequences,
            "max_input_tokens": told.input_tokens,
            "max_total_tokens": told.total_tokens,
            "validation_workers": told.validation_workers,
            "max_client_batch_size": told.client_batch_size,
            "router": "text-generation-router",
            "version": limits.VERSION,
            "sha": limits.SHA,
            "docker_label": limits.DOCKER_LABEL,
        }
        exchange.respond(json(document))
