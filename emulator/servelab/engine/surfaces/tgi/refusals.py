"""How the router says no: its own errors as JSON, axum's rejections as text."""

import json

from modelserve.errors import ModelServeError
from servelab.engine.exchange import Response

TEXT = "text/plain; charset=utf-8"
VALIDATION = "validation"
OVERLOADED = "overloaded"
GENERATION = "generation"
TEMPLATE = "template"


class Rejection(ModelServeError):
    """The body never reached a handler: a plain text."""

    def __init__(self, message: str, status: int) -> None:
        self.status = status
        super().__init__(message)

    def response(self) -> Response:
        """The whole answer."""
        return Response(self.status, str(self).encode(), TEXT)


class Refusal(ModelServeError):
    """An error of the router: HTTP status, type, and the label under which it is counted."""

    def __init__(self, message: str, kind: str, *, status: int = 422, label: str = "") -> None:
        self.kind = kind
        self.status = status
        self.label = label
        super().__init__(message)

    def body(self) -> bytes:
        """Its JSON."""
        document = {"error": str(self), "error_type": self.kind}
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()

    def response(self) -> Response:
        """The whole answer."""
        return Response(self.status, self.body())

    def event(self) -> bytes:
        """Its event in a stream of tokens."""
        return b"data: " + self.body() + b"\n\n"

    def openai_event(self) -> bytes:
        """Its event in an OpenAI stream, which calls all of them 422."""
        error = {"message": str(self), "http_status_code": 422}
        document = json.dumps({"error": error}, separators=(",", ":"), ensure_ascii=False)
        return b"data: " + document.encode() + b"\n\n"


def media_type() -> Rejection:
    """The content type is not JSON's."""
    return Rejection("Expected request with `Content-Type: application/json`", 415)


def syntax(message: str) -> Rejection:
    """The body is no JSON."""
    return Rejection(f"Failed to parse the request body as JSON: {message}", 400)


def data(message: str) -> Rejection:
    """The JSON is none of the type."""
    return Rejection(f"Failed to deserialize the JSON body into the target type: {message}", 422)


def too_large() -> Rejection:
    """The body is over the payload limit."""
    return Rejection("Failed to buffer the request body: length limit exceeded", 413)


def invalid(message: str) -> Refusal:
    """A parameter breaks a rule."""
    return Refusal(f"Input validation error: {message}", VALIDATION, label=VALIDATION)


def overloaded() -> Refusal:
    """As many requests are open as the router lets in."""
    return Refusal("Model is overloaded", OVERLOADED, status=429, label=OVERLOADED)


def failed(message: str) -> Refusal:
    """The fault is the engine's."""
    message = f"Request failed during generation: {message}"
    return Refusal(message, GENERATION, status=424, label=GENERATION)


def tool(message: str) -> Refusal:
    """A call of a function cannot be asked for, or cannot be read."""
    return Refusal(f"Tool error: {message}", "tool_error")
