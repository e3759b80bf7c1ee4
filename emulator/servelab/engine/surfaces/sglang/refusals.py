"""How SGLang says no: OpenAI's routes and the native ones have each their own shape."""

from collections.abc import Sequence
from typing import Any

from servelab.engine.exchange import Response
from servelab.engine.surfaces import fastapi
from servelab.engine.surfaces.refusing import Refusal, Shape

CONVERSION = "BadRequest"  # what fails while a request is turned into the engine's own
SCHEMA = "Bad Request"  # what the HTTP layer calls a body that does not meet the schema

INVALID = "invalid_request_error"

QUEUE_FULL = "The request queue is full."
# One bad body can fail in thousands of places; the first are told.
TOLD_ERRORS = 10


def native(refusal: Refusal) -> Refusal:
    """The same on a native route, if it is not about the schema."""
    if refusal.kind == SCHEMA or refusal.shape is not Shape.FLAT:
        return refusal
    return Refusal(str(refusal), status=refusal.status, shape=Shape.NESTED)


def queue_full() -> Refusal:
    """As many requests wait as ``--max-queued-requests`` lets wait."""
    return unavailable(QUEUE_FULL)


def unavailable(message: str) -> Refusal:
    """The scheduler will not have it."""
    return Refusal(message, status=503, kind="503")


class ResponsesRefusal(Refusal):
    """What the responses API refuses: nested, with the field it is about."""

    def __init__(
        self, message: str, *, status: int = 400, kind: str = INVALID, param: str | None = None
    ) -> None:
        super().__init__(message, status=status, kind=kind)
        self._param = param

    def response(self) -> Response:
        """The whole answer."""
        error = {
            "message": str(self),
            "type": self.kind,
            "param": self._param,
            "code": self.status,
        }
        return fastapi.document({"error": error}, self.status)


def responses(message: str, param: str | None = None, *, status: int = 400) -> ResponsesRefusal:
    """The responses API does not take it."""
    return ResponsesRefusal(message, status=status, param=param)


def no_store(param: str) -> ResponsesRefusal:
    """The server was not started with ``--enable-response-store``."""
    message = (
        "Response store is disabled. Stateful Responses require --enable-response-store on a "
        "standalone server; response storage is unavailable in PD mode."
    )
    return responses(message, param)


def of_responses(refusal: Refusal) -> Refusal:
    """The same on the responses API's paths."""
    if isinstance(refusal, ResponsesRefusal) or refusal.shape is Shape.TEXT:
        return refusal
    if refusal.kind == SCHEMA:
        return ResponsesRefusal(str(refusal), kind=SCHEMA)
    # The real server puts the status of what its scheduler refused into the message.
    message = str(refusal) if refusal.status == 400 else f"{refusal.status}: {refusal}"
    return responses(message)


def schema(errors: Sequence[Any]) -> Refusal:
    """The body does not meet the schema; ``errors`` are pydantic's."""
    told = [
        f"{'.'.join(str(part) for part in ('body', *error['loc']))}: {error['msg']}"
        for error in errors[:TOLD_ERRORS]
    ]
    plural = "s" if len(errors) > 1 else ""
    more = f"; and {len(errors) - TOLD_ERRORS} more" if len(errors) > TOLD_ERRORS else ""
    return Refusal(f"{len(errors)} validation error{plural}: {'; '.join(told)}{more}", kind=SCHEMA)


def malformed(where: str, message: str) -> Refusal:
    """The request cannot even be read."""
    return Refusal(f"1 validation error: {where}: {message}", kind=SCHEMA)


def unknown_model(name: str) -> Response:
    """No such model; only ``/v1/models/NAME`` ever says so: a request's model is not looked at."""
    error = {
        "message": f"The model '{name}' does not exist",
        "type": "invalid_request_error",
        "param": "model",
        "code": "model_not_found",
    }
    return fastapi.document({"error": error}, 404)
