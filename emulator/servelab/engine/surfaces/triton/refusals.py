"""How Triton's own server says no: statuses after HttpCodeFromError of its http_server.cc."""

from modelserve.errors import ModelServeError
from servelab.engine.exchange import Response
from servelab.engine.surfaces import fastapi

INTERNAL, UNSUPPORTED, UNAVAILABLE = 500, 501, 503


class TritonError(ModelServeError):
    """An error in Triton's shape."""

    def __init__(self, message: str, status: int = 400) -> None:
        self.status = status
        super().__init__(message)

    def response(self) -> Response:
        """The whole answer."""
        return fastapi.document({"error": str(self)}, self.status)


def request(name: str) -> str:
    """What the core begins its messages about a request with."""
    return f"[request id: {name or '<id_unknown>'}] "


def backend(message: str, ensemble: str | None, status: int = INTERNAL) -> TritonError:
    """What went wrong in the backend; an ensemble says that it was within it."""
    where = f"in ensemble '{ensemble}', " if ensemble is not None else ""
    return TritonError(where + message, status)
