"""How SGLang says no: OpenAI's routes and the native ones have each their own shape."""

from collections.abc import Sequence
from typing import Any

from servelab.engine.exchange import Response
from servelab.engine.surfaces import fastapi
from servelab.engine.surfaces.refusing import Refusal, Shape

CONVERSION = "BadRequest"  # what fails while a request is turned into the engine's own
SCHEMA = "Bad Request"  # what the HTTP layer calls a body that does not meet the schema

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
    return Refusal(QUEUE_FULL, status=503, kind="503")


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
