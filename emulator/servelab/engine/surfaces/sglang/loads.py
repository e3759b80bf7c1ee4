"""What an SGLang server says of its load to routers: ``/v1/loads``, as JSON or for Prometheus."""

import datetime
from collections.abc import Collection, Mapping
from typing import Any

from servelab.engine.exchange import Exchange, Response, Route
from servelab.engine.metrics import sglang as metrics
from servelab.engine.surfaces import fastapi, refusing
from servelab.engine.surfaces.sglang import refusals
from servelab.engine.surfaces.surface import Host

PATH = "/v1/loads"
TEXT = "text/plain; version=0.0.4; charset=utf-8"
SECTIONS = frozenset({"core", "memory", "spec", "lora", "disagg", "queues", "all"})
# Sections as they are asked for, as they are told, and in names of metrics.
_TOLD = (("disagg", "disaggregation", "disagg"), ("queues", "queues", "queues"))


class Loads:
    """The route."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def route(self) -> Route:
        """Its route."""
        return Route("GET", PATH, self._loads)

    def _loads(self, exchange: Exchange) -> None:
        query = exchange.request.query
        rank = _rank(query.get("dp_rank"))
        wanted = {each.strip() for each in query.get("include", "all").split(",")}
        self._host.settle()
        loads = [self._load(wanted)] if rank in (None, 0) else []
        if query.get("format") == "prometheus":
            exchange.respond(Response(200, _prometheus(loads).encode(), TEXT))
            return
        now = datetime.datetime.fromtimestamp(self._host.unix_s(), datetime.UTC)
        told = {
            "timestamp": now.isoformat(),
            "version": self._host.spec.profile.version,
            "accelerator": None,
            "num_accelerators": int(dict(self._host.spec.options).get("tp-size", "1")),
            "loads": loads,
        }
        exchange.respond(fastapi.document(told))

    def _load(self, wanted: Collection[str]) -> dict[str, Any]:
        """One rank's. Raises Refusal, as a fault: the real server fails at an unknown section."""
        if "all" not in wanted and not SECTIONS.issuperset(wanted):
            raise refusing.fault()
        sections = {"disaggregation": _apart(), "queues": self._queues()}
        return self._core() | {
            told: sections[told] for asked, told, _ in _TOLD if {asked, "all"} & set(wanted)
        }

    def _core(self) -> dict[str, Any]:
        load, config = self._host.load, self._host.spec.config
        capacity = config.kv_blocks * config.block_size
        used = round(load.kv_usage * capacity)
        looked_up, found = load.prefix_tokens
        exporter = self._host.exporter
        throughput = exporter.throughput if isinstance(exporter, metrics.Exporter) else 0.0
        return {
            "timestamp": self._host.unix_s(),
            "dp_rank": 0,
            "num_running_reqs": load.running,
            "num_waiting_reqs": load.waiting,
            "num_waiting_uncached_tokens": 0,
            "num_used_tokens": used,
            "num_total_tokens": used,
            "num_active_tokens": used,
            "num_prealloc_ready_tokens": 0,
            "max_total_num_tokens": capacity,
            "max_running_requests": config.max_sequences,
            "token_usage": load.kv_usage,
            "gen_throughput": throughput,
            "cache_hit_rate": found / looked_up if looked_up else 0.0,
            "utilization": 0.0,
            "total_prefill_uncached_tokens": looked_up - found,
            "total_prefill_busy_us": 0,
            "decode_moments": None,
        }

    def _queues(self) -> dict[str, int]:
        empty = dict.fromkeys(("grammar", "paused", "retracted", "prealloc_ready"), 0)
        return {"waiting": self._host.load.waiting} | empty


def _apart() -> dict[str, Any]:
    """Of prompts and decoding on different servers, which is not done here."""
    queues = ("prefill_bootstrap", "prefill_inflight", "decode_prealloc", "decode_transfer")
    counts = dict.fromkeys((f"{name}_queue_reqs" for name in (*queues, "decode_retracted")), 0)
    return {"mode": "null", **counts, "kv_transfer_speed_gb_s": 0.0, "kv_transfer_latency_ms": 0.0}


def _rank(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        raise refusals.malformed("query.dp_rank", "a whole number is wanted") from None


def _prometheus(loads: Collection[Mapping[str, Any]]) -> str:
    prefixes = {told: f"{prefix}_" for _, told, prefix in _TOLD}
    lines: list[str] = []
    for load in loads:
        flat = {name: value for name, value in load.items() if name != "dp_rank"}
        for section, prefix in prefixes.items():
            inner = flat.pop(section, {})
            flat |= {f"{prefix}{name}": value for name, value in inner.items()}
        for name, value in flat.items():
            if isinstance(value, int | float):
                lines.append(f"# TYPE sglang_{name} gauge")
                lines.append(f'sglang_{name}{{dp_rank="{load["dp_rank"]}"}} {value}')
    return "\n".join(lines) + "\n"
