"""The routes that put nothing into the core: health, models, version, tokens, load, metrics."""

from collections.abc import Sequence

from pydantic import BaseModel

from servelab.engine.exchange import Exchange, Response, Route
from servelab.engine.surfaces import fastapi, scraping
from servelab.engine.surfaces.surface import Host
from servelab.engine.surfaces.vllm import (
    anthropic,
    cards,
    logs,
    protocol,
    reading,
    refusals,
    responses,
    tokenizing,
)
from servelab.engine.text import encoding

# Paths that are there, but refuse unless the engine is started with --enable-scale-out.
SCALE_OUT = (
    "/inference/v1/generate",
    "/inference/v1/abort_requests",
    *(
        f"/v1/{what}/render"
        for what in ("chat/completions", "messages", "completions", "responses")
    ),
    *(f"/v1/{what}/derender" for what in ("chat/completions", "completions")),
)
ANY = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
# What the Prometheus client says where it is not asked for a newer one.
OLD_EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
# Ids are 32-bit numbers to the tokenizer; those it does not know stand for nothing.
LEAST_NO_ID = 2**32


class Retrieving(BaseModel):
    """What may be asked of a response beside its name."""

    starting_after: int | None = None
    stream: bool | None = False


class PlainRoutes:
    """What a server can say of itself."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._served = host.served

    def routes(self) -> Sequence[Route]:
        """Those that any server has."""
        return (
            Route("GET", "/health", self._health),
            Route("GET", "/metrics", self._metrics),
            # An application of its own is behind all else that begins so.
            *(Route(method, "/metrics{rest:path}", self._other_metrics) for method in ANY),
            Route("GET", "/ping", self._health),
            Route("POST", "/ping", self._health),
            Route("GET", "/load", self._load),
            Route("GET", "/v1/models", self._models),
            Route("GET", "/version", self._version),
            Route("POST", "/tokenize", self._tokenize, aside=True),
            Route("POST", "/detokenize", self._detokenize, aside=True),
            Route("GET", "/kv_event_sources", _no_events),
        )

    def generating(self) -> Sequence[Route]:
        """Those of a server whose model generates."""
        return (
            Route("POST", "/v1/messages/count_tokens", self._count, aside=True),
            *(Route("POST", path, _scale_out) for path in SCALE_OUT),
            Route("POST", "/is_scaling_elastic_ep", _not_scaling),
            Route("POST", "/scale_elastic_ep", self._scale),
            Route("GET", "/v1/responses/{response_id}", _retrieve),
            Route("POST", "/v1/responses/{response_id}/cancel", _no_response),
        )

    def _health(self, exchange: Exchange) -> None:
        exchange.respond(Response(content_type=None))

    def _load(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document({"server_load": self._host.open_requests}))

    def _metrics(self, exchange: Exchange) -> None:
        exchange.respond(scraping.exposition(self._host))

    def _other_metrics(self, exchange: Exchange) -> None:
        answer = scraping.exposition(self._host)
        exchange.begin(answer._replace(content_type=OLD_EXPOSITION))
        exchange.end()

    def _scale(self, exchange: Exchange) -> None:
        """As many engines as there are may be asked for; others would need Ray."""
        asked = reading.load(exchange.request.body, exchange.request.content_type)
        if not isinstance(asked, dict):
            raise refusals.internal()
        wanted, drain_s = asked.get("new_data_parallel_size"), asked.get("drain_timeout", 120)
        numbers = {"new_data_parallel_size": wanted, "drain_timeout": drain_s}
        for name, number in numbers.items():
            if not isinstance(number, int) or number <= 0:
                message = f"{name} must be a whole number over 0."
                raise refusals.Refusal(message, kind=refusals.SCHEMA)
        if wanted != int(dict(self._served.options).get("data-parallel-size", 1)):
            message = "This engine cannot be scaled while it runs."
            raise refusals.Refusal(message, status=500, kind="Internal Server Error")
        told = {"message": f"Scaled to {wanted} data parallel engines"}
        exchange.respond(fastapi.document(told))

    def _version(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document({"version": logs.VERSION}))

    def _models(self, exchange: Exchange) -> None:
        root, permission = self._host.spec.model_name, f"{self._host.created_unix_s:x}"
        exchange.respond(cards.listing(self._host, "vllm", root, permission))

    def _tokenize(self, exchange: Exchange) -> None:
        asked = reading.load(exchange.request.body, exchange.request.content_type)
        wanted = tokenizing.read(asked)
        protocol.check_model(wanted.model, self._served)
        tokens = protocol.tokenized(wanted, asked)
        answer = {
            "count": len(tokens),
            "max_model_len": self._served.max_model_tokens,
            "tokens": tokens,
            "token_strs": list(map(encoding.name, tokens)) if wanted.return_token_strs else None,
        }
        exchange.respond(fastapi.document(answer))

    def _detokenize(self, exchange: Exchange) -> None:
        asked = reading.load(exchange.request.body, exchange.request.content_type)
        body = reading.validate(tokenizing.Tokens, asked)
        protocol.check_model(body.model, self._served)
        if max(body.tokens, default=0) >= LEAST_NO_ID:
            raise refusals.Refusal(f"Token ids must be under {LEAST_NO_ID}.")
        exchange.respond(fastapi.document({"prompt": encoding.decode(body.tokens)}))

    def _count(self, exchange: Exchange) -> None:
        request = exchange.request
        exchange.respond(
            fastapi.document(anthropic.count(request.body, request.content_type, self._served))
        )


def _retrieve(exchange: Exchange) -> None:
    reading.validate(Retrieving, exchange.request.query, "query")
    _no_response(exchange)


def _no_response(exchange: Exchange) -> None:
    raise responses.unknown(exchange.request.parameters["response_id"])


def _scale_out(exchange: Exchange) -> None:
    message = "Scale-out endpoints are off: start the engine with --enable-scale-out."
    raise refusals.Refusal(message, status=403, kind=refusals.DENIED)


def _no_events(exchange: Exchange) -> None:
    exchange.respond(fastapi.document({}))


def _not_scaling(exchange: Exchange) -> None:
    none = dict.fromkeys(("epoch", "error", "requested_data_parallel_size"))
    exchange.respond(fastapi.document({"is_scaling_elastic_ep": False, "phase": "idle"} | none))
