"""What Triton's own server answers beside inference: repository, statistics, shared memory, trace,
logging.

Rules are those of server/src/http_server.cc and shared_memory_manager.cc.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from servelab.engine.exchange import Exchange, Response, Route
from servelab.engine.metrics import triton as metrics
from servelab.engine.surfaces import fastapi
from servelab.engine.surfaces.surface import Host
from servelab.engine.surfaces.triton import documents, refusals, tensors
from servelab.engine.surfaces.triton.refusals import TritonError
from servelab.engine.surfaces.triton.repository import Repository

_DURATIONS = ("success", "fail", "queue", "compute_input", "compute_infer", "compute_output")
_COMPUTED = ("compute_input", "compute_infer", "compute_output")
_TRACE: Mapping[str, Any] = {
    "trace_level": ["OFF"],
    "trace_rate": "1000",
    "trace_count": "-1",
    "log_frequency": "0",
    "trace_file": "",
    "trace_mode": "triton",
}
_LOGGING: Mapping[str, Any] = {
    "log_file": "",
    "log_info": True,
    "log_warning": True,
    "log_error": True,
    "log_verbose_level": 0,
    "log_format": "default",
}
_LOG_KINDS = {
    **dict.fromkeys(("log_info", "log_warning", "log_error"), (bool, "boolean")),
    "log_verbose_level": (int, "unsigned-integer"),
    "log_format": (str, "string"),
}


class Extensions:
    """The routes of one server."""

    def __init__(self, host: Host, exporter: metrics.Exporter, repository: Repository) -> None:
        self._host = host
        self._exporter = exporter
        self._repository = repository
        self._logging = dict(_LOGGING)
        self._trace = dict(_TRACE)

    def routes(self) -> Sequence[Route]:
        """All paths of theirs."""
        found = [
            Route("GET", "/v2/models/stats", self._all_statistics),
            *_both("/v2/logging", self._set_logging, self._show_logging),
            *_both("/v2/trace/setting", self._set_trace, self._show_trace),
            *_both("/v2/models/{model}/trace/setting", self._set_trace, self._show_trace),
        ]
        for path in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
            found.append(Route("GET", f"{path}/stats", self._statistics))
        for path in ("/v2/repository", "/v2/repository/{repository}"):
            found += [
                Route("POST", f"{path}/index", self._index),
                Route("POST", f"{path}/models/{{model}}/load", self._load),
                Route("POST", f"{path}/models/{{model}}/unload", self._unload),
            ]
        for kind in ("system", "cuda"):
            for path in (f"/v2/{kind}sharedmemory", f"/v2/{kind}sharedmemory/region/{{region}}"):
                found += [
                    Route("GET", f"{path}/status", _region_status),
                    Route("POST", f"{path}/register", _register),
                    Route("POST", f"{path}/unregister", _done),
                ]
        return found

    def _index(self, exchange: Exchange) -> None:
        document = documents.loaded(exchange.request.body, empty=True)
        ready = "ready" in document and _member(document, "ready", bool, "boolean")
        exchange.respond(fastapi.document(self._repository.index(ready=ready)))

    def _load(self, exchange: Exchange) -> None:
        self._control(exchange)
        self._repository.load(exchange.request.parameters["model"])
        _done(exchange)

    def _unload(self, exchange: Exchange) -> None:
        self._control(exchange)
        self._repository.unload(exchange.request.parameters["model"])
        _done(exchange)

    def _control(self, exchange: Exchange) -> None:
        if "repository" in exchange.request.parameters:
            message = "'repository_name' specification is not supported"
            raise TritonError(message, refusals.UNSUPPORTED)
        documents.loaded(exchange.request.body, empty=True)

    def _all_statistics(self, exchange: Exchange) -> None:
        self._tell_statistics(exchange, self._repository.loaded)

    def _statistics(self, exchange: Exchange) -> None:
        parameters = exchange.request.parameters
        model, version = parameters["model"], parameters.get("version", "")
        if model not in self._repository.names:
            raise TritonError(f"Request for unknown model: '{model}' is not found")
        if model not in self._repository.loaded:
            raise TritonError(f"requested model '{model}' is not available")
        if version not in ("", metrics.VERSION):
            raise TritonError(f"requested model version is not available for model '{model}'")
        self._tell_statistics(exchange, (model,))

    def _tell_statistics(self, exchange: Exchange, models: Sequence[str]) -> None:
        self._host.settle()
        found = [_told(model, self._exporter.statistics(model)) for model in models]
        exchange.respond(fastapi.document({"model_stats": found}))

    def _show_logging(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document(self._logging))

    def _set_logging(self, exchange: Exchange) -> None:
        document = documents.loaded(exchange.request.body)
        if document.get("log_file") is not None:
            message = "log file location can not be updated through network protocol"
            raise TritonError(message, refusals.UNSUPPORTED)
        for name, (kind, word) in _LOG_KINDS.items():
            if document.get(name) is None:
                continue
            value = _member(document, name, kind, word)
            if name == "log_format" and value not in ("default", "ISO8601"):
                message = f"invalid argument for --log_format, got: {value}"
                raise TritonError(message, refusals.UNAVAILABLE)
            self._logging[name] = value
        self._show_logging(exchange)

    def _show_trace(self, exchange: Exchange) -> None:
        model = exchange.request.parameters.get("model")
        if model is not None:
            self._repository.check(model, "")
        exchange.respond(fastapi.document(self._trace))

    def _set_trace(self, exchange: Exchange) -> None:
        document = documents.loaded(exchange.request.body)
        if "trace_file" in document:
            message = "trace file location can not be updated through network protocol"
            raise TritonError(message, refusals.UNSUPPORTED)
        for name in ("trace_rate", "trace_count", "log_frequency"):
            value = document.get(name)
            if value is None:
                continue
            text = _member(document, name, str, "string")
            if not text.lstrip("-").isdecimal():
                raise TritonError(f"Unable to parse '{name}', got: {text}")
            self._trace[name] = str(int(text))
        if document.get("trace_level") is not None:
            self._trace["trace_level"] = _member(document, "trace_level", list, "array")
        self._show_trace(exchange)


def _both(path: str, change: Any, show: Any) -> tuple[Route, Route]:
    return Route("GET", path, show), Route("POST", path, change)


def _member(document: Mapping[str, Any], name: str, kind: type, word: str) -> Any:
    """A member as ``tensors.member`` reads it, without saying which."""
    try:
        return tensors.member(document, name, kind, word)
    except TritonError as error:
        raise TritonError(str(error).partition(": ")[2]) from None


def _told(model: str, found: metrics.Statistics) -> dict[str, Any]:
    """A model's statistics; nothing is cached here, and no response is told by itself."""
    none = dict.fromkeys((*_DURATIONS, "cache_hit", "cache_miss"), (0, 0))
    figures = none | dict(found.durations)
    stats = {name: {"count": count, "ns": ns} for name, (count, ns) in figures.items()}
    batches: list[dict[str, Any]] = []
    if found.executions:
        batches.append({"batch_size": 1, **{name: stats[name] for name in _COMPUTED}})
    return {
        "name": model,
        "version": metrics.VERSION,
        "last_inference": found.last_unix_ms,
        "inference_count": found.executions,
        "execution_count": found.executions,
        "inference_stats": stats,
        "response_stats": {},
        "batch_stats": batches,
        "memory_usage": [],
    }


def _done(exchange: Exchange) -> None:
    exchange.respond(Response())


def _region_status(exchange: Exchange) -> None:
    """No region is ever registered here: it would be memory of another process."""
    region = exchange.request.parameters.get("region")
    if region is not None:
        kind = "cuda" if "/cudasharedmemory/" in exchange.request.path else "system"
        message = f"Unable to find {kind} shared memory region: '{region}'"
        raise TritonError(message, 404)
    exchange.respond(fastapi.document([]))


def _register(exchange: Exchange) -> None:
    cuda = "/cudasharedmemory/" in exchange.request.path
    kind, field = ("cuda", "raw_handle") if cuda else ("system", "key")
    if "region" not in exchange.request.parameters:
        message = f"'region name' is necessary to register {kind} shared memory region"
        raise TritonError(message)
    document = documents.loaded(exchange.request.body)
    for name in (field, "byte_size"):
        if name not in document:
            raise TritonError(f"Shared memory register request has no '{name}' field")
    region = exchange.request.parameters["region"]
    if cuda:
        message = f"failed to register CUDA shared memory region '{region}': invalid args"
        raise TritonError(message)
    message = f"Unable to open shared memory region: '{document['key']}'"
    raise TritonError(message, refusals.INTERNAL)
