"""NVIDIA NIM for LLMs 1.x: OpenAI's paths, and what NVIDIA's own documents ask of a container.

What it says of itself is after the pages of docs.nvidia.com/nim and recorded answers; the source is
not public.
"""

import hashlib

from modelserve.errors import ModelServeError
from servelab.engine.calls import Call
from servelab.engine.core.intake import QueueFull
from servelab.engine.exchange import Exchange, Handler, Request, Response, Route
from servelab.engine.metrics import nim as metrics
from servelab.engine.surfaces import fastapi, scraping
from servelab.engine.surfaces.nim import refusals, replies
from servelab.engine.surfaces.nim.logs import VERSION
from servelab.engine.surfaces.surface import Host
from servelab.engine.surfaces.vllm import cards, protocol
from servelab.engine.surfaces.vllm import refusals as vllm_refusals

LICENSE = "The real container shows its license here; this one runs no model.\n"
_LICENSE_PATH = "/opt/nim/LICENSE"
_LICENSE_URL = "https://www.nvidia.com/en-us/data-center/products/nvidia-ai-enterprise/eula/"


class NimSurface(fastapi.Application):
    """One NIM with one model."""

    def __init__(self, host: Host) -> None:
        exporter = host.exporter
        assert isinstance(exporter, metrics.Exporter)
        self._host = host
        self._exporter = exporter
        self._served = host.served
        self._routes = (
            # The first releases had it here, later ones under /v1.
            Route("GET", "/metrics", self._metrics),
            Route("GET", "/v1/metrics", self._metrics),
            Route("GET", "/v1/health/ready", _message("health.response", "Service is ready.")),
            Route("GET", "/v1/health/live", _message("health.response", "Service is live.")),
            Route("GET", "/v1/models", self._models),
            Route("GET", "/v1/version", self._version),
            Route("GET", "/v1/license", self._license),
            Route("GET", "/v1/metadata", self._metadata),
            Route("GET", "/v1/manifest", self._manifest),
            Route("POST", "/v1/chat/completions", self._chat, aside=True),
            Route("POST", "/v1/completions", self._completion, aside=True),
        )

    def refused(self, request: Request, error: Exception) -> Response:
        """A flat body."""
        response = refusals.response(self._refusal(error))
        self._exporter.count_answer(response.status)
        return response

    def _refusal(self, error: Exception) -> vllm_refusals.Refusal:
        if isinstance(error, vllm_refusals.Refusal):
            return error
        if isinstance(error, QueueFull):
            return vllm_refusals.queue_full(self._host.spec.config.queue_limit or 0)
        if isinstance(error, ModelServeError):
            return vllm_refusals.Refusal(str(error))
        return vllm_refusals.internal()

    def _metrics(self, exchange: Exchange) -> None:
        exchange.respond(scraping.exposition(self._host))

    def _models(self, exchange: Exchange) -> None:
        name, permission = self._served.name, self._host.name()
        exchange.respond(cards.listing(self._host, "system", name, permission))

    def _version(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document({"release": VERSION, "api": VERSION}))

    def _license(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document(_license()))

    def _metadata(self, exchange: Exchange) -> None:
        name = self._served.name
        document = {
            "assetInfo": [],
            "licenseInfo": _license(),
            "modelInfo": [{"modelUrl": f"ngc://nim/{name}", "shortName": name.rsplit("/", 1)[-1]}],
            "version": VERSION,
        }
        exchange.respond(fastapi.document(document))

    def _manifest(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document({"manifest_file": ""}))

    def _chat(self, exchange: Exchange) -> None:
        request = exchange.request
        call = protocol.parse_chat(request.body, request.content_type, self._served)
        self._answer(exchange, "chat-", call)

    def _completion(self, exchange: Exchange) -> None:
        request = exchange.request
        call = protocol.parse_completion(request.body, request.content_type, self._served)
        self._answer(exchange, "cmpl-", call)

    def _answer(self, exchange: Exchange, prefix: str, call: Call) -> None:
        if call.late is not None:
            raise call.late
        name, now = prefix + self._host.name(), int(self._host.unix_s())
        head = replies.Head(name, now, self._served.name, call.chat)
        self._host.generate(exchange, replies.reply(head, call))


def _message(kind: str, message: str) -> Handler:
    def handle(exchange: Exchange) -> None:
        exchange.respond(fastapi.document({"object": kind, "message": message}))

    return handle


def _license() -> dict[str, str | int]:
    return {
        "name": "LICENSE",
        "path": _LICENSE_PATH,
        "sha": hashlib.sha1(LICENSE.encode(), usedforsecurity=False).hexdigest(),
        "size": len(LICENSE),
        "url": _LICENSE_URL,
        "type": "file",
        "content": LICENSE,
    }
