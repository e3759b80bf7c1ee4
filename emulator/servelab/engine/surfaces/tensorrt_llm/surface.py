"""The outside of ``trtllm-serve``, which is FastAPI on uvicorn.

It listens once its model is loaded. It knows its model by one name and takes any.
"""

from collections.abc import Sequence

from servelab.engine import exchange as exchanges
from servelab.engine.exchange import Exchange, Handler, Request, Response, Route
from servelab.engine.metrics import tensorrt_llm as metrics
from servelab.engine.surfaces import fastapi, refusing, scraping
from servelab.engine.surfaces.refusing import Refusal, Shape
from servelab.engine.surfaces.surface import Host
from servelab.engine.surfaces.tensorrt_llm import (
    asking,
    bodies,
    chunks,
    refusals,
    replies,
    responding,
)
from servelab.engine.surfaces.tensorrt_llm.asking import Settings
from servelab.engine.text import encoding

# How blocks are named in events of the KV cache, unless the options say otherwise.
HASHES = "v1_block_key"
# What Python says where a prompt of ids is put before a text.
ECHOED_IDS = 'can only concatenate list (not "str") to list'
GUIDED, PARSER = "guided-decoding-backend", "tool-parser"


class TensorrtLlmSurface(fastapi.Application):
    """TensorRT-LLM 1.3."""

    def __init__(self, host: Host) -> None:
        self._host = host
        spec = host.spec
        exporter = host.exporter
        self._exporter = exporter if isinstance(exporter, metrics.Exporter) else None
        self._settings = Settings(
            spec.config.max_model_tokens,
            spec.config.max_batched_tokens,
            chunked=spec.config.chunked_prefill,
            guided=GUIDED in dict(spec.options),
            parses=PARSER in dict(spec.options),
        )
        self._telling = replies.Telling(host.name, host.unix_s, spec.served_name)
        self._routes = tuple(self._table())

    def _table(self) -> Sequence[Route]:
        told: list[tuple[str, str, Handler]] = [
            ("GET", "/health", self._health),
            ("GET", "/health_generate", self._health_generate),
            ("GET", "/version", self._version),
            ("GET", "/v1/models", self._models),
            ("GET", "/v1/data_transceiver_state", self._no_transceiver),
            ("GET", "/metrics", self._steps),
            ("GET", "/energy_metrics", self._no_energy),
            ("GET", "/server_info", self._server_info),
            ("POST", "/kv_cache_events", self._no_events),
            ("POST", "/v1/chat/completions", self._chat),
            ("POST", "/v1/completions", self._completion),
            ("POST", "/_internal/tokenize", self._tokenize),
        ]
        if self._exporter is not None and self._exporter.enabled:
            # An application of its own, which answers at all that begins so.
            paths = ("/prometheus/metrics", "/prometheus/metrics/{rest:path}")
            told += [("GET", path, self._metrics) for path in paths]
        routes = [
            Route(method, path, handler, aside=method == "POST") for method, path, handler in told
        ]
        more = responding.Responses(self._host, self._telling, self._settings)
        return [*routes, *more.routes()]

    def refused(self, request: Request, error: Exception) -> Response:
        """An error in its shape."""
        if isinstance(error, fastapi.HttpError):
            return error.response()
        refusal = refusing.of(error, refusals.queue_full())
        of_schema = refusal.shape is Shape.BARE
        # It counts what does not meet the schema, and no other errors.
        if self._exporter is not None and of_schema:
            self._exporter.count_error(refusal.status)
        return refusal.response()

    def _chat(self, exchange: Exchange) -> None:
        request = exchange.request
        body = asking.parse(bodies.ChatRequest, request.body, request.content_type)
        asked = asking.chat(body, self._settings)
        self._host.generate(exchange, replies.chat(asked, self._telling))

    def _completion(self, exchange: Exchange) -> None:
        request = exchange.request
        body = asking.parse(bodies.CompletionRequest, request.body, request.content_type)
        asked = asking.completion(body, self._settings)
        if asked.echoes_ids:
            if not asked.call.stream:
                raise Refusal(ECHOED_IDS)
            exchange.begin(Response(content_type=exchanges.EVENT_STREAM))
            exchange.write(chunks.failed(ECHOED_IDS))
            exchange.end()
            return
        self._host.generate(exchange, replies.completion(asked, self._telling))

    def _tokenize(self, exchange: Exchange) -> None:
        request = exchange.request
        body = asking.parse(bodies.TokenizeRequest, request.body, request.content_type)
        tokens = encoding.encode(body.prompt)
        exchange.respond(fastapi.document({"count": len(tokens), "tokens": tokens}))

    def _health(self, exchange: Exchange) -> None:
        exchange.respond(Response(content_type=None))

    def _health_generate(self, exchange: Exchange) -> None:
        # The real one generates a token first.
        exchange.respond(Response(body=b"Generation health check OK", content_type=None))

    def _version(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document({"version": self._host.spec.profile.version}))

    def _models(self, exchange: Exchange) -> None:
        card = {
            "id": self._host.served.name,
            "object": "model",
            "created": int(self._host.unix_s()),
            "owned_by": "tensorrt_llm",
        }
        exchange.respond(fastapi.document({"object": "list", "data": [card]}))

    def _server_info(self, exchange: Exchange) -> None:
        config = self._host.spec.config
        info = {
            "disaggregated_params": {},
            "max_batch_size": config.max_sequences,
            "tokens_per_block": config.block_size,
            "startup_metrics": {},
            "kv_cache_hash_algo": HASHES,
        }
        exchange.respond(fastapi.document(info))

    def _steps(self, exchange: Exchange) -> None:
        self._host.settle()
        steps = self._exporter.steps if self._exporter is not None else None
        told = [] if steps is None else steps.drain(self._host.unix_s())
        exchange.respond(fastapi.document(told))

    def _metrics(self, exchange: Exchange) -> None:
        exchange.respond(scraping.exposition(self._host))

    def _no_energy(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document({"error": "Energy monitoring is not available"}, 503))

    def _no_transceiver(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document({"error": "No transceiver state available"}, 404))

    def _no_events(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document([]))
