"""An error a client gets, in the forms that servers of OpenAI's API tell it in."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from modelserve.errors import ModelServeError
from servelab.engine.core.intake import QueueFull
from servelab.engine.exchange import Response
from servelab.engine.surfaces import fastapi

BAD_REQUEST = "BadRequestError"


class Shape(StrEnum):
    """The form of an error."""

    FLAT = "flat"  # object, message, type, param, code
    NESTED = "nested"  # {"error": {"message": …}}
    BARE = "bare"  # {"error": "…"}
    TEXT = "text"  # what the server says where its own code failed


class Refusal(ModelServeError):
    """A status, a type and a message."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str = BAD_REQUEST,
        shape: Shape = Shape.FLAT,
    ) -> None:
        self.status = status
        self.kind = kind
        self.shape = shape
        super().__init__(message)

    def response(self) -> Response:
        """The whole answer."""
        message = str(self)
        if self.shape is Shape.TEXT:
            return Response(self.status, message.encode(), "text/plain; charset=utf-8")
        document: Mapping[str, Any] = {
            "object": "error",
            "message": message,
            "type": self.kind,
            "param": None,
            "code": self.status,
        }
        if self.shape is Shape.NESTED:
            document = {"error": {"message": message}}
        elif self.shape is Shape.BARE:
            document = {"error": message}
        return fastapi.document(document, self.status)


def fault() -> Refusal:
    """The server's own code failed."""
    return Refusal("Internal Server Error", status=500, shape=Shape.TEXT)


def of(error: Exception, queue_full: Refusal) -> Refusal:
    """What a client is told where a handler raised."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, QueueFull):
        return queue_full
    return Refusal(str(error)) if isinstance(error, ModelServeError) else fault()
