"""Triton's front ends: its OpenAI server (FastAPI), or its own HTTP server with v2 and generate.

One port is dialled in a worker process, so metrics are on the main port of both. What the real
server has on ports of its own is in ``other_ports``.
"""

from collections.abc import Mapping, Sequence

from modelserve.engines import triton
from modelserve.errors import ModelServeError
from servelab.engine.calls import Call
from servelab.engine.core.intake import QueueFull
from servelab.engine.exchange import Exchange, Handler, Request, Response, Route
from servelab.engine.surfaces import fastapi, scraping
from servelab.engine.surfaces.fastapi import HttpError, Unprocessable
from servelab.engine.surfaces.surface import Host
from servelab.engine.surfaces.triton import (
    asking,
    generation,
    replies,
    repository,
    schemas,
)
from servelab.engine.surfaces.triton.repository import TritonError

OWNER = "Triton Inference Server"
METRICS_PORT = 8002
TEXT = "text/plain"


class TritonSurface:
    """Triton 2.61 with the TensorRT-LLM backend."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._served = host.served
        options = dict(host.spec.options)
        self._native = triton.NATIVE in host.spec.options
        self._default_tokens = int(options.get("default-max-tokens") or 16)
        self._kserve_port = options.get("kserve-http-port")
        self._repository = repository.Repository(
            self._served.name, min(host.spec.config.max_sequences, 2048)
        )
        self._routes = self._own_routes() if self._native else self._openai_routes()

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
            return {METRICS_PORT: [Route("GET", "/metrics", self._metrics)]}
        return {int(self._kserve_port): self._own_routes()} if self._kserve_port else {}

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
        limit = self._host.spec.config.queue_limit
        message = str(error) if isinstance(error, ModelServeError) else "internal error"
        if isinstance(error, QueueFull):
            again = "has been reached, please try again later"
            message = f"Maximum queue size of {limit} {again}"
        if request.path.startswith("/v2"):
            status = 503 if isinstance(error, QueueFull) else 400
            return TritonError(message, status).response()
        return asking.refusal(message).response()

    def unready(self, request: Request) -> Response:
        """It does not listen while the models load."""
        return Response(400, content_type=TEXT)

    def _openai_routes(self) -> Sequence[Route]:
        return (
            Route("GET", "/metrics", self._metrics),
            Route("GET", "/health/ready", self._ready),
            Route("GET", "/v1/models", self._models),
            Route("GET", "/v1/models/{model}", self._model),
            Route("POST", "/v1/completions", self._completion),
            Route("POST", "/v1/chat/completions", self._chat),
        )

    def _own_routes(self) -> Sequence[Route]:
        routes = [
            Route("GET", "/metrics", self._metrics),
            Route("GET", "/v2", self._server_metadata),
            Route("GET", "/v2/health/live", _healthy),
            Route("GET", "/v2/health/ready", _healthy),
            Route("POST", "/v2/repository/index", self._index),
            Route("POST", "/v2/repository/{repository}/index", self._index),
        ]
        for path in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
            routes += [
                Route("GET", path, self._of_model(self._metadata)),
                Route("GET", f"{path}/ready", self._of_model(_healthy)),
                Route("GET", f"{path}/config", self._of_model(self._config)),
                Route("POST", f"{path}/infer", self._of_model(_no_infer)),
                Route("POST", f"{path}/generate", self._of_model(self._generate)),
                Route("POST", f"{path}/generate_stream", self._of_model(self._generate_stream)),
            ]
        return routes

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

    def _server_metadata(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document(repository.server_metadata()))

    def _index(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document(self._repository.index()))

    def _of_model(self, handler: Handler) -> Handler:
        """The handler, for a model of the repository."""

        def handle(exchange: Exchange) -> None:
            parameters = exchange.request.parameters
            self._repository.check(parameters["model"], parameters.get("version", ""))
            handler(exchange)

        return handle

    def _metadata(self, exchange: Exchange) -> None:
        model = exchange.request.parameters["model"]
        exchange.respond(fastapi.document(self._repository.metadata(model)))

    def _config(self, exchange: Exchange) -> None:
        model = exchange.request.parameters["model"]
        exchange.respond(fastapi.document(self._repository.config(model)))

    def _generate(self, exchange: Exchange) -> None:
        wanted = self._wanted(exchange, stream=False)
        self._host.generate(exchange, generation.Generated(wanted, self._served.name))

    def _generate_stream(self, exchange: Exchange) -> None:
        wanted = self._wanted(exchange, stream=True)
        self._host.generate(exchange, generation.GeneratedStream(wanted, self._served.name))

    def _wanted(self, exchange: Exchange, *, stream: bool) -> generation.Wanted:
        model = exchange.request.parameters["model"]
        if model != self._served.name:
            message = f"model '{model}' takes tensors, not text: ask '{self._served.name}'"
            raise TritonError(message)
        wanted = generation.parse(exchange.request.body, model, stream=stream)
        if (told := asking.too_long(wanted.call, self._served)) is not None:
            raise TritonError(told)
        return wanted


def _healthy(exchange: Exchange) -> None:
    exchange.respond(Response(content_type=TEXT))


def _no_infer(exchange: Exchange) -> None:
    message = "HTTP end point doesn't support models with decoupled transaction policy"
    raise TritonError(message, 501)
