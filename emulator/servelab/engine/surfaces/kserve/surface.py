"""KServe's model server 0.20: Open Inference Protocol, and vLLM's routes under ``/openai``."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel

from servelab.engine.exchange import Exchange, Handler, Request, Response, Route
from servelab.engine.surfaces import fastapi, scraping
from servelab.engine.surfaces.fastapi import HttpError, Unprocessable
from servelab.engine.surfaces.kserve import refusals
from servelab.engine.surfaces.kserve.refusals import Refused, Unsupported
from servelab.engine.surfaces.surface import Host, State
from servelab.engine.surfaces.vllm import bodies, embedding_bodies
from servelab.engine.surfaces.vllm.surface import VllmSurface

VERSION = "0.20.0"
# Its first part can be set in the real server's environment.
OPENAI = "/openai/v1"
_LATENCIES = ("preprocess", "postprocess", "predict", "explain")
_VERBS = {"preprocess": "pre-process", "postprocess": "post-process"}


class RerankRequest(BaseModel):
    """What the model server asks of a body before it asks the model."""

    model: str | None = None
    query: str | dict[str, Any]
    documents: list[str] | dict[str, Any]


_INNER: Sequence[tuple[str, type[BaseModel], str]] = (
    ("/v1/completions", bodies.CompletionRequest, "Completions"),
    ("/v1/chat/completions", bodies.ChatRequest, "Chat Completions"),
    ("/v1/embeddings", embedding_bodies.OfPrompt, "Embeddings"),
    ("/v1/rerank", RerankRequest, "Rerank"),
)


class KserveSurface(fastapi.Application):
    """The model server with one model, which vLLM runs."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._vllm = VllmSurface(host)
        self._unloaded = False
        model, version = "/v2/models/{model}", "/v2/models/{model}/versions/{version}"
        self._routes = (
            Route("GET", "/", self._alive),
            Route("GET", "/metrics", self._metrics),
            Route("GET", "/v1/models", self._models),
            Route("GET", "/v1/models/{model}", self._of_model(self._ready)),
            Route("POST", "/v1/models/{model}:predict", self._of_model(_no_inference)),
            Route("POST", "/v1/models/{model}:explain", self._of_model(_no_inference)),
            Route("GET", "/v2", self._metadata),
            Route("GET", "/v2/health/live", self._live),
            Route("GET", "/v2/health/ready", self._server_ready),
            Route("GET", "/v2/models", self._models),
            Route("GET", model, self._of_model(_no_inference)),
            Route("GET", f"{model}/ready", self._of_model(self._ready)),
            Route("POST", f"{model}/infer", self._of_model(_no_inference)),
            Route("GET", version, _no_versions),
            Route("GET", f"{version}/ready", _no_versions),
            Route("POST", f"{version}/infer", _no_versions),
            Route("POST", "/v2/repository/models/{model}/load", self._load),
            Route("POST", "/v2/repository/models/{model}/unload", self._unload),
            *self._inner_routes(),
            Route("GET", f"{OPENAI}/models", self._openai_models),
            Route("GET", OPENAI + "/models/{model}", self._of_model(_nothing)),
        )

    def refused(self, request: Request, error: Exception) -> Response:
        """The model server's own errors, or vLLM's as it passes them on."""
        if isinstance(error, Refused | Unsupported | Unprocessable | HttpError):
            return error.response()
        return refusals.openai(self._vllm.refused(request, error))

    def _inner_routes(self) -> Iterator[Route]:
        """What vLLM answers, as far as it does with this model."""
        inner = {route.path: route for route in self._vllm.routes()}
        for path, kind, what in _INNER:
            route = inner.get(path) or Route("POST", path, _unsupported(what))
            handler = self._read(kind, route.handler)
            yield dataclasses.replace(route, path=f"/openai{path}", handler=handler)

    def _alive(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document({"status": "alive"}))

    def _metrics(self, exchange: Exchange) -> None:
        exchange.respond(scraping.exposition(self._host, latencies()))

    def _models(self, exchange: Exchange) -> None:
        names = [] if self._unloaded else [self._host.served.name]
        exchange.respond(fastapi.document({"models": names}))

    def _openai_models(self, exchange: Exchange) -> None:
        model = {
            "id": self._host.served.name,
            "object": "model",
            "created": self._host.created_unix_s,
            "owned_by": "",
            "root": None,
            "parent": None,
            "max_model_len": None,
            "permission": [],
        }
        data = [] if self._unloaded else [model]
        exchange.respond(fastapi.document({"object": "list", "data": data}))

    def _metadata(self, exchange: Exchange) -> None:
        extensions = ["model_repository_extension"]
        exchange.respond(
            fastapi.document({"name": "kserve", "version": VERSION, "extensions": extensions})
        )

    def _live(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document({"live": True}))

    def _server_ready(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document({"ready": True}))

    def _ready(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document({"name": self._host.served.name, "ready": True}))

    def _load(self, exchange: Exchange) -> None:
        """The model is there; what is not cannot be loaded: the server has no folder of models."""
        name = exchange.request.parameters["model"]
        if self._unloaded or name != self._host.served.name:
            raise refusals.not_ready(name)
        exchange.respond(fastapi.document({"name": name, "load": True}))

    def _unload(self, exchange: Exchange) -> None:
        """For good: nothing brings it back."""
        name = exchange.request.parameters["model"]
        if self._unloaded or name != self._host.served.name:
            raise refusals.unknown_model(name)
        self._unloaded = True
        exchange.respond(fastapi.document({"name": name, "unload": True}))

    def _of_model(self, handler: Handler) -> Handler:
        """The handler, for the model that is served."""

        def handle(exchange: Exchange) -> None:
            self._check(exchange.request.parameters["model"])
            handler(exchange)

        return handle

    def _check(self, name: str | None) -> None:
        if self._unloaded or name != self._host.served.name:
            raise refusals.unknown_model(name)
        if self._host.state is State.LOADING:
            raise refusals.not_ready(self._host.served.name)

    def _read(self, kind: type[BaseModel], handler: Handler) -> Handler:
        """vLLM's handler behind FastAPI's reading of the body, and the look for the model."""

        def handle(exchange: Exchange) -> None:
            document = fastapi.loaded(exchange.request)
            fastapi.validated(kind, document)
            self._check(document.get("model"))
            handler(exchange)

        return handle


def latencies() -> str:
    """KServe's own histograms; a model that speaks OpenAI's API has no series in them."""
    return "".join(
        f"# HELP request_{name}_seconds {_VERBS.get(name, name)} request latency\n"
        f"# TYPE request_{name}_seconds histogram\n"
        for name in _LATENCIES
    )


def _unsupported(what: str) -> Handler:
    def handle(exchange: Exchange) -> None:
        raise Unsupported(what)

    return handle


def _no_inference(exchange: Exchange) -> None:
    raise refusals.no_inference()


def _no_versions(exchange: Exchange) -> None:
    raise refusals.no_versions()


def _nothing(exchange: Exchange) -> None:
    exchange.respond(fastapi.document(None))
