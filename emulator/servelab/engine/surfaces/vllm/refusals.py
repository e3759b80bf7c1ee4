"""How the engine says no: OpenAI-style error bodies with vLLM's types and codes."""

import re
from collections.abc import Sequence
from typing import Any

from modelserve.errors import ModelServeError
from servelab.engine.surfaces import events, fastapi

BAD_REQUEST = "BadRequestError"
NOT_FOUND = "NotFoundError"
DENIED = "PermissionDeniedError"
SCHEMA = "Bad Request"  # what the HTTP layer calls a body that does not meet the schema
INVALID = "invalid_request_error"  # what the responses API calls its own refusals
UNAVAILABLE = "Service Unavailable"
INTERNAL = "InternalServerError"

# One bad body can fail in thousands of places; the first are told.
TOLD_ERRORS = 10

# Parts of an error's path that name no field but a branch of the schema, in pydantic's words.
_BRACKETS = re.compile(r"[\[\]{}()]")
_BRANCHES = frozenset(
    {
        *("function-wrap", "function-after", "function-before", "function-plain"),
        *("json-or-python", "lax-or-strict", "chain", "default", "nullable", "tagged-union"),
        *("union", "call", "arguments", "is-instance", "is-subclass", "callable", "str", "int"),
        *("float", "bool", "bytes", "bytearray", "list", "tuple", "dict", "set", "frozenset"),
        *("complex", "none", "nonetype"),
    }
)


class Refusal(ModelServeError):
    """An error a client gets: HTTP status, vLLM's type, and the parameter at fault, if any."""

    def __init__(
        self, message: str, *, status: int = 400, kind: str = BAD_REQUEST, param: str | None = None
    ) -> None:
        self.status = status
        self.kind = kind
        self.param = param
        super().__init__(message)

    def body(self) -> bytes:
        """The JSON to send."""
        error = {
            "message": str(self),
            "type": self.kind,
            "param": self.param,
            "code": self.status,
        }
        return events.compact({"error": error})

    def last(self) -> bytes | None:
        """What ends a stream that is open already; None: it is cut."""
        return b"data: " + self.body() + b"\n\n" + events.DONE


class Cut(Refusal):
    """A refusal of the responses API, which has no word for it once its stream is open."""

    def last(self) -> None:
        return None


def cut(refusal: Refusal) -> Cut:
    """The same refusal in the responses API."""
    return Cut(str(refusal), status=refusal.status, kind=refusal.kind, param=refusal.param)


def unknown_model(name: str, served: str) -> Refusal:
    """No such model here."""
    message = f"The model `{name}` does not exist: this engine serves `{served}`."
    return Refusal(message, status=404, kind=NOT_FOUND, param="model")


def too_long(prompt_tokens: int, max_model_tokens: int) -> Refusal:
    """The prompt does not fit the model's length."""
    return Refusal(
        f"The prompt takes {prompt_tokens} tokens, but this model's maximum context length is "
        f"{max_model_tokens} tokens: shorten the prompt.",
        param="input_tokens",
    )


def too_many_characters(characters: int, max_model_tokens: int) -> Refusal:
    """The prompt cannot fit the model's length, whatever its tokens are."""
    return Refusal(
        f"The prompt has {characters} characters, but this model's maximum context length is "
        f"{max_model_tokens} tokens: shorten the prompt.",
        param="input_text",
    )


def queue_full(limit: int) -> Refusal:
    """The queue limit is reached."""
    message = f"{limit} requests are waiting, as many as this engine lets wait: try again later."
    return Refusal(message, status=503, kind=UNAVAILABLE)


def internal() -> Refusal:
    """The fault is the engine's."""
    return Refusal("The engine failed on this request.", status=500, kind=INTERNAL)


def malformed(message: str, position: int) -> Refusal:
    """The body is no JSON."""
    return Refusal(
        f"1 validation error: body.{position}: no valid JSON: {message}.",
        kind=SCHEMA,
        param=f"body.{position}",
    )


class Unreadable(Refusal):
    """The body cannot even be looked at; FastAPI says so before vLLM has a word."""

    def __init__(self) -> None:
        super().__init__(fastapi.UNREADABLE, kind=SCHEMA)

    def body(self) -> bytes:
        return events.compact({"detail": str(self)})


def schema(errors: Sequence[Any], where: str = "body") -> Refusal:
    """The body, or what else is meant by ``where``, does not meet the schema.

    ``errors`` are pydantic's.
    """
    told = [(path(error["loc"], where), error["msg"]) for error in errors[:TOLD_ERRORS]]
    plural = "s" if len(errors) > 1 else ""
    text = "; ".join(f"{field}: {message}" for field, message in told)
    more = f"; and {len(errors) - TOLD_ERRORS} more" if len(errors) > TOLD_ERRORS else ""
    return Refusal(
        f"{len(errors)} validation error{plural}: {text}{more}", kind=SCHEMA, param=told[0][0]
    )


def path(location: Sequence[int | str], where: str = "body") -> str:
    """A field as vLLM names it: without the branches of the schema."""
    parts = (where, *(str(part) for part in location))
    named = (part for part in parts if part.lower() not in _BRANCHES)
    return ".".join(part for part in named if not _BRACKETS.search(part))
