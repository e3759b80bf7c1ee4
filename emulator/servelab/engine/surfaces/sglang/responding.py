"""The routes of the responses API, and the store of what was answered."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from servelab.engine.core.intake import QueueFull
from servelab.engine.exchange import Exchange, Request, Response, Route
from servelab.engine.replying import Reply
from servelab.engine.surfaces import fastapi
from servelab.engine.surfaces.refusing import Refusal
from servelab.engine.surfaces.sglang import (
    asking,
    control,
    making,
    refusals,
    responses,
    responses_replies,
)
from servelab.engine.surfaces.sglang.responses_replies import Document, ResponsesStream
from servelab.engine.surfaces.surface import Host

PATH = "/v1/responses"
# A choice: the real server keeps all.
MOST_KEPT = 10_000
OPEN = ("queued", "in_progress")


class Detached:
    """An exchange whose client has its answer already."""

    def __init__(self, request: Request, failed: Callable[[Exception], None]) -> None:
        self.request = request
        self._failed = failed

    def respond(self, response: Response) -> None:
        """It is kept already."""

    def begin(self, response: Response) -> None:
        """Nobody listens."""

    def write(self, data: bytes) -> None:
        """Nobody listens."""

    def end(self) -> None:
        """Nobody listens."""

    def fail(self, error: Exception) -> None:
        """It cannot be completed."""
        self._failed(error)

    def on_gone(self, callback: Callable[[], None]) -> None:
        """There is nobody who could go."""

    def later(self, act: Callable[[], None]) -> None:
        """It is made where the engine's state may be touched."""
        act()


class Responses:
    """The API."""

    def __init__(self, host: Host, server: making.Telling, steering: control.Control) -> None:
        self._host = host
        self._server = server
        self._control = steering
        self._stores = host.served.has(responses.STORE)
        self._kept: dict[str, dict[str, Any]] = {}
        self._histories: dict[str, Sequence[Mapping[str, Any]]] = {}

    def routes(self) -> Sequence[Route]:
        """Its routes."""
        return (
            Route("POST", PATH, self._create, aside=True),
            Route("GET", f"{PATH}/{{name}}", self._retrieve),
            Route("POST", f"{PATH}/{{name}}/cancel", self._cancel),
        )

    def _create(self, exchange: Exchange) -> None:
        came = exchange.request
        request = asking.openai(responses.Request, came.body, came.content_type)
        responses.check(request, self._host.served)
        before = self._before(request.previous_response_id)
        found = responses.read(request, before, self._host.served)
        rid = request.request_id or f"resp_{self._host.name()}"
        items = (*before, *responses.items(request))
        keeps = self._stores and bool(request.store)
        document = Document(
            request,
            rid,
            int(self._host.unix_s()),
            lambda told: self._keep(told, items) if keeps else None,
        )
        if not request.stream:
            asked = responses.asked(request, found, rid, self._host.served)
            reply = responses_replies.ResponsesWhole(asked, self._server, document)
            if request.background:
                exchange.later(lambda: self._run(exchange, reply, document, items))
            else:
                self._control.start(exchange, lambda: self._host.generate(exchange, reply))
            return
        self._stream(exchange, request, found, document)

    def _stream(
        self,
        exchange: Exchange,
        request: responses.Request,
        found: responses.Read,
        document: Document,
    ) -> None:
        waits = bool(found.functions) and request.choice != "none"

        def generate() -> None:
            # The real one has begun to answer when it finds what is wrong.
            try:
                asked = responses.asked(request, found, document.rid, self._host.served)
                reply = ResponsesStream(asked, self._server, document, waits=waits)
                self._host.generate(exchange, reply)
            except QueueFull:
                self._fail(exchange, document, refusals.QUEUE_FULL, counted=True)
            except Refusal as refusal:
                self._fail(exchange, document, str(refusal))

        self._control.start(exchange, generate)

    def _fail(
        self, exchange: Exchange, document: Document, message: str, *, counted: bool = False
    ) -> None:
        exchange.begin(responses_replies.HEAD)
        exchange.write(responses_replies.failed(document, message, counted=counted))
        exchange.end()

    def _run(
        self,
        exchange: Exchange,
        reply: Reply,
        document: Document,
        items: Sequence[Mapping[str, Any]],
    ) -> None:
        """Answer at once, and generate with nobody waiting."""
        queued = document.build("queued")
        self._keep(queued, items)
        detached = Detached(exchange.request, lambda error: self._failed(document.rid))
        exchange.respond(fastapi.document(queued))
        queued["status"] = "in_progress"
        try:
            self._control.start(detached, lambda: self._host.generate(detached, reply))
        except QueueFull:
            self._failed(document.rid)

    def _failed(self, rid: str) -> None:
        kept = self._kept.get(rid)
        if kept is not None and kept["status"] in OPEN:
            kept["status"] = "failed"

    def _before(self, rid: str | None) -> Sequence[Mapping[str, Any]]:
        """What was said up to an earlier response. Raises Refusal."""
        if rid is None:
            return ()
        self._find(rid)
        return self._histories.get(rid, ())

    def _find(self, rid: str) -> dict[str, Any]:
        if not self._stores:
            raise refusals.no_store("response_id")
        if not rid.startswith("resp_"):
            message = f"Invalid 'response_id': '{rid}'. Expected an ID that begins with 'resp'."
            raise refusals.responses(message, "response_id")
        kept = self._kept.get(rid)
        if kept is None:
            message = f"Response with id '{rid}' not found."
            raise refusals.responses(message, "response_id", status=404)
        return kept

    def _keep(self, document: dict[str, Any], items: Sequence[Mapping[str, Any]]) -> None:
        rid = document["id"]
        kept = self._kept.get(rid)
        if kept is not None and kept["status"] == "cancelled":
            return
        self._kept[rid] = document
        self._histories[rid] = (*items, *document["output"])
        if len(self._kept) > MOST_KEPT:
            oldest = next(iter(self._kept))
            del self._kept[oldest], self._histories[oldest]

    def _retrieve(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document(self._find(exchange.request.parameters["name"])))

    def _cancel(self, exchange: Exchange) -> None:
        kept = self._find(exchange.request.parameters["name"])
        if kept["status"] in OPEN:
            kept["status"] = "cancelled"
            self._control.abort(kept["id"])
        exchange.respond(fastapi.document(kept))
