"""What an SGLang server tells of itself: health, models, load, configuration."""

from collections.abc import Sequence
from typing import Any

from servelab.engine.exchange import Exchange, Response, Route
from servelab.engine.metrics import sglang as metrics
from servelab.engine.surfaces import fastapi, scraping
from servelab.engine.surfaces.sglang import control, refusals, serverargs, startup
from servelab.engine.surfaces.surface import Host

# Of the context, what no prompt may take.
RESERVED_TOKENS = 6


class Info:
    """The routes that put nothing into the core."""

    def __init__(self, host: Host, steering: control.Control) -> None:
        self._host = host
        self._control = steering
        self._options = dict(host.spec.options)

    def routes(self) -> Sequence[Route]:
        """Its routes."""
        always = (
            ("/v1/models", self._models),
            ("/v1/models/{name:path}", self._model),
            ("/model_info", self._model_info),
            ("/get_model_info", self._model_info),
            ("/server_info", self._server_info),
            ("/get_server_info", self._server_info),
            ("/", self._root),
        )
        told = [Route("GET", path, self._health) for path in ("/health", "/health_generate")]
        told += [
            Route("GET", "/ready", self._ready),
            Route("GET", "/ping", self._ping),
        ]
        told += [Route("GET", path, handler) for path, handler in always]
        if "enable-metrics" in self._options:
            told.append(Route("GET", "/metrics", self._metrics))
        return told

    def _health(self, exchange: Exchange) -> None:
        # The real one also waits until its scheduler has said something, for a second at least.
        _answer(exchange, self._control.checked())

    def _ready(self, exchange: Exchange) -> None:
        _answer(exchange, self._control.healthy and not self._control.paused)

    def _ping(self, exchange: Exchange) -> None:
        _answer(exchange, self._control.healthy)

    def _root(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document("SGLang is running"))

    def _start_up(self) -> dict[str, Any]:
        return startup.times(self._host.start_up_s, self._host.spec.warm_up)

    def _metrics(self, exchange: Exchange) -> None:
        exporter = self._host.exporter
        if self._host.start_up_s and isinstance(exporter, metrics.Exporter):
            exporter.started(self._start_up())
        exchange.respond(scraping.exposition(self._host))

    def _card(self) -> dict[str, Any]:
        name = self._host.served.name
        return {
            "id": name,
            "object": "model",
            "created": int(self._host.unix_s()),
            "owned_by": "sglang",
            "root": name,
            "parent": None,
            "max_model_len": self._host.served.max_model_tokens,
        }

    def _models(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document({"object": "list", "data": [self._card()]}))

    def _model(self, exchange: Exchange) -> None:
        name = exchange.request.parameters["name"]
        known = name == self._host.served.name
        exchange.respond(fastapi.document(self._card()) if known else refusals.unknown_model(name))

    def _model_info(self, exchange: Exchange) -> None:
        exchange.respond(
            fastapi.document(
                {
                    "model_path": self._host.spec.model_name,
                    "served_model_name": self._host.served.name,
                    "tokenizer_path": self._host.spec.model_name,
                    "is_generation": True,
                    "preferred_sampling_params": None,
                    "weight_version": "default",
                    "load_format": "auto",
                    "reasoning_parser": self._options.get("reasoning-parser"),
                    "tool_call_parser": self._options.get("tool-call-parser"),
                    "disaggregation_mode": "null",
                    "has_image_understanding": False,
                    "has_audio_understanding": False,
                }
            )
        )

    def _server_info(self, exchange: Exchange) -> None:
        """All arguments, and what the scheduler says of itself."""
        self._host.settle()
        spec, config = self._host.spec, self._host.spec.config
        settled = serverargs.resolved(spec)
        start_up = self._start_up()
        capacity = config.kv_blocks * config.block_size
        exporter = self._host.exporter
        throughput = exporter.throughput if isinstance(exporter, metrics.Exporter) else 0.0
        state = settled | {
            "world_size": settled["tp_size"],
            "startup_time": start_up,
            "effective_max_running_requests_per_dp": config.max_sequences,
            "last_gen_throughput": throughput,
            "memory_usage": {"token_capacity": capacity},
        }
        told = settled | {
            "status": "ready",
            "max_total_num_tokens": capacity,
            "max_req_input_len": config.max_model_tokens - RESERVED_TOKENS,
            "startup_time": start_up,
            "kv_events": None,
            "internal_states": [state],
            "version": spec.profile.version,
            "frontend": "python",
        }
        exchange.respond(fastapi.document(told))


def _answer(exchange: Exchange, well: bool) -> None:
    exchange.respond(Response(200 if well else 503, content_type=None))
