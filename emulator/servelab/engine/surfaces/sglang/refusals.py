"""How SGLang says no: OpenAI's routes and the native ones have each their own shape."""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from modelserve.errors import ModelServeError
from servelab.engine.exchange import Response

BAD_REQUEST = "BadRequestError"
CONVERSION = "BadRequest"  # what fails while a request is turned into the engine's own
SCHEMA = "Bad Request"  # what the HTTP layer calls a body that does not meet the schema

QUEUE_FULL = "The request queue is full."
# One bad body can fail in thousands of places; the first are told.
TOLD_ERRORS = 10


class Shape(StrEnum):
    """The JSON an error is told in."""

    OPENAI = "openai"  # object, message, type, param, code
    NATIVE = "native"  # {"error": {"message": …}}
    CONTRACT = "contract"  # {"error": "…"}
    TEXT = "text"  # what the server says where its own code failed


class Refusal(ModelServeError):
    """An error a client gets."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str = BAD_REQUEST,
        shape: Shape = Shape.OPENAI,
    ) -> None:
        self.status = status
        self.kind = kind
        self.shape = shape
        super().__init__(message)

    def document(self) -> Mapping[str, Any]:
        """The JSON to send."""
        message = str(self)
        if self.shape is Shape.NATIVE:
            return {"error": {"message": message}}
        if self.shape is Shape.CONTRACT:
            return {"error": message}
        return {
            "object": "error",
            "message": message,
            "type": self.kind,
            "param": None,
            "code": self.status,
        }

    def response(self) -> Response:
        """The answer."""
        if self.shape is Shape.TEXT:
            return Response(self.status, str(self).encode(), "text/plain; charset=utf-8")
        return Response(self.status, json.dumps(self.document(), separators=(",", ":")).encode())


def native(refusal: Refusal) -> Refusal:
    """The same on a native route, if it is not about the schema."""
    if refusal.kind == SCHEMA or refusal.shape is not Shape.OPENAI:
        return refusal
    return Refusal(str(refusal), status=refusal.status, shape=Shape.NATIVE)


def queue_full() -> Refusal:
    """As many requests wait as ``--max-queued-requests`` lets wait."""
    return Refusal(QUEUE_FULL, status=503, kind="503")


def fault() -> Refusal:
    """The server's own code failed."""
    return Refusal("Internal Server Error", status=500, shape=Shape.TEXT)


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
    return Response(404, json.dumps({"error": error}).encode())
