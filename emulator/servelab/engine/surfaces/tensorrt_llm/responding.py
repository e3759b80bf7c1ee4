"""The routes of TensorRT-LLM's responses API, and its small store."""

from collections.abc import Mapping, Sequence
from typing import Any

from servelab.engine.exchange import Exchange, Route
from servelab.engine.surfaces import fastapi
from servelab.engine.surfaces.refusing import Refusal
from servelab.engine.surfaces.surface import Host
from servelab.engine.surfaces.tensorrt_llm import asking, replies, responses, responses_replies
from servelab.engine.surfaces.tensorrt_llm.asking import Settings
from servelab.engine.surfaces.tensorrt_llm.responses_replies import Document

PATH = "/v1/responses"
# As many as the real server keeps.
MOST_KEPT = 16
INVALID = "InvalidRequestError"


class Responses:
    """The API. A response that is to be made in the background is made in the foreground."""

    def __init__(self, host: Host, server: replies.Telling, settings: Settings) -> None:
        self._host = host
        self._server = server
        self._settings = settings
        self._kept: dict[str, dict[str, Any]] = {}
        self._histories: dict[str, Sequence[Mapping[str, Any]]] = {}

    def routes(self) -> Sequence[Route]:
        """Its routes."""
        return (
            Route("POST", PATH, self._create),
            Route("GET", f"{PATH}/{{name}}", self._retrieve),
            Route("DELETE", f"{PATH}/{{name}}", self._delete),
        )

    def _create(self, exchange: Exchange) -> None:
        came = exchange.request
        request = asking.parse(responses.Request, came.body, came.content_type)
        previous = request.previous_response_id
        before: Sequence[Mapping[str, Any]] = ()
        if previous is not None:
            before = self._histories[self._find(previous)["id"]]
        asked = responses.asked(request, before, self._settings)
        rid = request.request_id or f"resp_{self._server.name()}"
        items = (*before, *responses.items(request))

        def keep(told: dict[str, Any]) -> None:
            if request.store:
                self._keep(told, items)

        created = int(self._host.unix_s())
        document = Document(request, rid, self._server.model, created, keep)
        stream = asked.call.stream
        kind = responses_replies.ResponsesStream if stream else responses_replies.ResponsesWhole
        self._host.generate(exchange, kind(asked, self._server, document))

    def _keep(self, document: dict[str, Any], items: Sequence[Mapping[str, Any]]) -> None:
        rid = document["id"]
        self._kept[rid] = document
        self._histories[rid] = (*items, *document["output"])
        if len(self._kept) > MOST_KEPT:
            oldest = next(iter(self._kept))
            del self._kept[oldest], self._histories[oldest]

    def _find(self, rid: str) -> dict[str, Any]:
        """What is kept by this name. Raises Refusal."""
        if not rid.startswith("resp_"):
            message = f"Invalid 'response_id': '{rid}'. Expected an ID that begins with 'resp'."
            raise Refusal(message, kind=INVALID)
        if rid not in self._kept:
            raise Refusal(f"Response with id '{rid}' not found.", status=404, kind=INVALID)
        return self._kept[rid]

    def _retrieve(self, exchange: Exchange) -> None:
        exchange.respond(fastapi.document(self._find(exchange.request.parameters["name"])))

    def _delete(self, exchange: Exchange) -> None:
        rid = self._find(exchange.request.parameters["name"])["id"]
        del self._kept[rid], self._histories[rid]
        told = {"id": rid, "object": "response", "deleted": True}
        exchange.respond(fastapi.document(told))
