"""What an SGLang server tells of itself: health, models, load, configuration."""

import datetime
from collections.abc import Sequence
from typing import Any

from servelab.engine.exchange import Exchange, Response, Route
from servelab.engine.surfaces import fastapi, refusing, scraping
from servelab.engine.surfaces.sglang import refusals
from servelab.engine.surfaces.surface import Host, State

TEXT = "text/plain; version=0.0.4; charset=utf-8"
SECTIONS = frozenset({"core", "memory", "spec", "lora", "disagg", "queues", "all"})


class Info:
    """The routes that put nothing into the core."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._options = dict(host.spec.options)

    def routes(self) -> Sequence[Route]:
        """Its routes. Those that tell of readiness say no before it; the others answer already."""
        always = (
            ("/v1/models", self._models),
            ("/v1/models/{name:path}", self._model),
            ("/model_info", self._model_info),
            ("/get_model_info", self._model_info),
            ("/server_info", self._server_info),
            ("/get_server_info", self._server_info),
            ("/v1/loads", self._loads),
            ("/", self._root),
        )
        told = [
            Route("GET", path, self._health, self._health)
            for path in ("/health", "/health_generate", "/ready", "/ping")
        ]
        told += [Route("GET", path, handler, handler) for path, handler in always]
        if "enable-metrics" in self._options:
            told.append(Route("GET", "/metrics", self._metrics, self._metrics))
        return told

    def _health(self, exchange: Exchange) -> None:
        # The real one also waits until its scheduler has said something, for a second at least.
        ready = self._host.state is State.READY
        exchange.respond(Response(200 if ready else 503, content_type=None))

    def _root(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document("SGLang is running"))

    def _metrics(self, exchange: Exchange) -> None:
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
                    "reasoning_parser": None,
                    "tool_call_parser": None,
                    "disaggregation_mode": "null",
                    "has_image_understanding": False,
                    "has_audio_understanding": False,
                }
            )
        )

    def _server_info(self, exchange: Exchange) -> None:
        """Of the several hundred arguments those that this engine goes by."""
        spec = self._host.spec
        config = spec.config
        state = {"last_gen_throughput": 0.0, "effective_max_running_requests_per_dp": None}
        exchange.respond(
            fastapi.document(
                {
                    "model_path": spec.model_name,
                    "tokenizer_path": spec.model_name,
                    "served_model_name": spec.served_name,
                    "context_length": config.max_model_tokens,
                    "mem_fraction_static": spec.gpu_memory_utilization,
                    "max_running_requests": config.max_sequences,
                    "max_queued_requests": config.queue_limit,
                    "chunked_prefill_size": config.max_batched_tokens,
                    "schedule_policy": self._options.get("schedule-policy", "fcfs"),
                    "enable_metrics": "enable-metrics" in self._options,
                    "enable_cache_report": "enable-cache-report" in self._options,
                    "disable_radix_cache": not config.prefix_caching,
                    "max_total_num_tokens": config.kv_blocks * config.block_size,
                    "max_req_input_len": config.max_model_tokens - 6,
                    "internal_states": [state],
                    "version": spec.profile.version,
                    "frontend": "python",
                }
            )
        )

    def _loads(self, exchange: Exchange) -> None:
        query = exchange.request.query
        wanted = {each.strip() for each in query.get("include", "all").split(",")}
        if not wanted <= SECTIONS:
            raise refusing.fault()
        self._host.settle()
        core, queues = self._load()
        if query.get("format") == "prometheus":
            exchange.respond(Response(200, _prometheus(core).encode(), TEXT))
            return
        load = core | ({"queues": queues} if wanted & {"all", "queues"} else {})
        exchange.respond(
            fastapi.document(
                {
                    "timestamp": datetime.datetime.fromtimestamp(
                        self._host.unix_s(), datetime.UTC
                    ).isoformat(),
                    "version": self._host.spec.profile.version,
                    "accelerator": None,
                    "num_accelerators": int(self._options.get("tp-size", "1")),
                    "loads": [load],
                }
            )
        )

    def _load(self) -> tuple[dict[str, Any], dict[str, int]]:
        load, config = self._host.load, self._host.spec.config
        capacity = config.kv_blocks * config.block_size
        used = round(load.kv_usage * capacity)
        looked_up, found = load.prefix_tokens
        core = {
            "timestamp": self._host.unix_s(),
            "dp_rank": 0,
            "num_running_reqs": load.running,
            "num_waiting_reqs": load.waiting,
            "num_used_tokens": used,
            "max_total_num_tokens": capacity,
            "max_running_requests": config.max_sequences,
            "token_usage": load.kv_usage,
            "cache_hit_rate": found / looked_up if looked_up else 0.0,
            "utilization": 0.0,
        }
        return core, {"waiting": load.waiting, "grammar": 0, "paused": 0, "retracted": 0}


def _prometheus(core: dict[str, Any]) -> str:
    rank = core["dp_rank"]
    lines = []
    for name, value in core.items():
        if name != "dp_rank":
            lines += [f"# TYPE sglang_{name} gauge", f'sglang_{name}{{dp_rank="{rank}"}} {value}']
    return "\n".join(lines) + "\n"
