"""Triton's front ends: its OpenAI server (FastAPI), or its own HTTP server with v2 and generate.

One port is dialled in a worker process, so metrics are on the main port of both. What the real
server has on ports of its own is in ``other_ports``.
"""

from collections.abc import Mapping, Sequence

from modelserve.engines import triton
from modelserve.errors import ModelServeError
from servelab.engine.calls import Call
from servelab.engine.core.intake import QueueFull
from servelab.engine.exchange import Exchange, Request, Response, Route
from servelab.engine.metrics import triton as metrics
from servelab.engine.surfaces import fastapi, scraping
from servelab.engine.surfaces.fastapi import HttpError, Unprocessable
from servelab.engine.surfaces.surface import Host
from servelab.engine.surfaces.triton import (
    asking,
    native,
    refusals,
    replies,
    repository,
    schemas,
)
from servelab.engine.surfaces.triton.refusals import TritonError

OWNER = "Triton Inference Server"


class TritonSurface:
    """Triton 2.61 with the TensorRT-LLM backend."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._served = host.served
        options = dict(host.spec.options)
        self._native = triton.NATIVE in host.spec.options
        self._default_tokens = int(options.get("default-max-tokens") or 16)
        self._kserve_port = options.get("kserve-http-port")
        self._metrics_port = triton.metrics_port(options)
        self._repository = repository.Repository(
            self._served.name,
            min(host.spec.config.max_sequences, 2048),
            explicit=options.get("model-control-mode") == "explicit",
        )
        exporter = host.exporter
        assert isinstance(exporter, metrics.Exporter)
        # The OpenAI front end streams, so its models do.
        decoupled = not self._native or triton.DECOUPLED in host.spec.options
        own = native.Native(host, exporter, self._repository, decoupled=decoupled)
        self._own_routes = own.routes()
        self._routes = self._own_routes if self._native else self._openai_routes()

    @property
    def vary(self) -> str | None:
        """None."""
        return None

    @property
    def server(self) -> str | None:
        """uvicorn names itself, Triton's own server does not."""
        return None if self._native else fastapi.SERVER

    def routes(self) -> Sequence[Route]:
        """All paths it knows on its main port."""
        return self._routes

    def other_ports(self) -> Mapping[int, Sequence[Route]]:
        """Routes that the real server has on further ports."""
        if self._native:
            return {self._metrics_port: [Route("GET", "/metrics", self._metrics)]}
        return {int(self._kserve_port): self._own_routes} if self._kserve_port else {}

    def not_found(self, request: Request) -> Response:
        """FastAPI's detail, or Triton's error."""
        if self._native:
            return TritonError("Not Found", 404).response()
        return fastapi.not_found(request, self._routes)

    def wrong_method(self, request: Request, allowed: Sequence[str]) -> Response:
        """FastAPI's detail, or Triton's error, which names no method."""
        if self._native:
            return TritonError("Method Not Allowed", 405).response()
        return fastapi.wrong_method(allowed)

    def refused(self, request: Request, error: Exception) -> Response:
        """FastAPI's details, or Triton's errors."""
        if isinstance(error, HttpError | Unprocessable | TritonError):
            return error.response()
        message = str(error) if isinstance(error, ModelServeError) else "internal error"
        ensemble = self._repository.ensemble(request.parameters.get("model", self._served.name))
        if isinstance(error, QueueFull):
            message = f"{refusals.request('')}Exceeds maximum queue size"
            full = refusals.backend(message, ensemble, refusals.UNAVAILABLE)
            if self._is_own(request):
                return full.response()
            message = str(full)
        if self._is_own(request):
            known = isinstance(error, ModelServeError)
            return TritonError(message, 400 if known else refusals.INTERNAL).response()
        return asking.refusal(message).response()

    def _is_own(self, request: Request) -> bool:
        return request.path.startswith("/v2")

    def unready(self, request: Request) -> Response:
        """It does not listen while the models load."""
        return Response(400, content_type=native.TEXT)

    def _openai_routes(self) -> Sequence[Route]:
        return (
            Route("GET", "/metrics", self._metrics),
            Route("GET", "/health/ready", self._ready),
            Route("GET", "/v1/models", self._models),
            Route("GET", "/v1/models/{model}", self._model),
            Route("POST", "/v1/completions", self._completion, aside=True),
            Route("POST", "/v1/chat/completions", self._chat, aside=True),
        )

    def _metrics(self, exchange: Exchange) -> None:
        exchange.respond(scraping.exposition(self._host))

    def _ready(self, exchange: Exchange) -> None:
        exchange.respond(Response(content_type=None))

    def _listed(self, name: str) -> dict[str, object]:
        created = self._host.created_unix_s
        return {"id": name, "created": created, "object": "model", "owned_by": OWNER}

    def _models(self, exchange: Exchange) -> None:
        data = [self._listed(name) for name in self._repository.names]
        exchange.respond(fastapi.document({"object": "list", "data": data}))

    def _model(self, exchange: Exchange) -> None:
        name = exchange.request.parameters["model"]
        if name not in self._repository.names:
            raise HttpError(f"Unknown model: {name}", 404)
        exchange.respond(fastapi.document(self._listed(name)))

    def _completion(self, exchange: Exchange) -> None:
        content = fastapi.loaded(exchange.request)
        request = fastapi.validated(schemas.CreateCompletionRequest, content)
        call = asking.completion(request, self._served, self._default_tokens)
        self._answer(exchange, call)

    def _chat(self, exchange: Exchange) -> None:
        content = fastapi.loaded(exchange.request)
        request = fastapi.validated(schemas.CreateChatCompletionRequest, content)
        self._answer(exchange, asking.chat(request, self._served, self._default_tokens))

    def _answer(self, exchange: Exchange, call: Call) -> None:
        if (told := asking.too_long(call, self._served)) is not None:
            raise asking.refusal(told)
        name = replies.request_id(self._host.name())
        head = replies.Head(name, int(self._host.unix_s()), self._served.name)
        build = replies.Stream if call.stream else replies.Whole
        self._host.generate(exchange, build(call, head))
