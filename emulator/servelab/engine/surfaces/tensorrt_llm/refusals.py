"""How ``trtllm-serve`` says no."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from modelserve.errors import ModelServeError
from servelab.engine.exchange import Response
from servelab.engine.surfaces import fastapi

BAD_REQUEST = "BadRequestError"
QUEUE_FULL = "The request queue is full."
# One bad body can fail in thousands of places; the first are told.
TOLD_ERRORS = 10


class Shape(StrEnum):
    """The form an error is told in."""

    OPENAI = "openai"  # object, message, type, param, code
    SCHEMA = "schema"  # {"error": "…"}
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
        if self.shape is Shape.SCHEMA:
            return {"error": str(self)}
        return {
            "object": "error",
            "message": str(self),
            "type": self.kind,
            "param": None,
            "code": self.status,
        }

    def response(self) -> Response:
        """The answer."""
        if self.shape is Shape.TEXT:
            return Response(self.status, str(self).encode(), "text/plain; charset=utf-8")
        return fastapi.document(self.document(), self.status)


def fault() -> Refusal:
    """The server's own code failed."""
    return Refusal("Internal Server Error", status=500, shape=Shape.TEXT)


def queue_full() -> Refusal:
    """The real server lets as many wait as come; this is for an engine that is told a limit."""
    return Refusal(QUEUE_FULL, status=503, kind="InternalServerError")


def schema(errors: Sequence[Any]) -> Refusal:
    """The body does not meet the schema; ``errors`` are pydantic's."""
    told = [f"  {_told(error)}" for error in errors[:TOLD_ERRORS]]
    plural = "s" if len(errors) != 1 else ""
    message = "\n".join([f"{len(errors)} validation error{plural}:", *told])
    return Refusal(message, shape=Shape.SCHEMA)


def _told(error: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "type": error["type"],
        "loc": ("body", *error["loc"]),
        "msg": error["msg"],
        "input": str(error["input"])[:200],
    }
