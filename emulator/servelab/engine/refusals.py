"""How the engine says no: OpenAI-style error bodies with vLLM's types and codes."""

import json
from collections.abc import Sequence
from typing import Any

from modelserve.errors import ModelServeError

BAD_REQUEST = "BadRequestError"
NOT_FOUND = "NotFoundError"
SCHEMA = "Bad Request"  # what the HTTP layer calls a body that does not meet the schema
UNAVAILABLE = "Service Unavailable"
INTERNAL = "InternalServerError"


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
        return json.dumps({"error": error}).encode()


def unknown_model(name: str, served: str) -> Refusal:
    """No such model here."""
    message = f"The model `{name}` does not exist: this engine serves `{served}`."
    return Refusal(message, status=404, kind=NOT_FOUND, param="model")


def too_long(prompt_tokens: int, output_tokens: int, max_model_tokens: int) -> Refusal:
    """Prompt and answer do not fit the model's length."""
    wish = f" and the answer may take {output_tokens}" if output_tokens else ""
    return Refusal(
        f"The prompt takes {prompt_tokens} tokens{wish}, but this model's maximum context length "
        f"is {max_model_tokens} tokens: shorten the prompt or ask for fewer tokens.",
        param="input_tokens",
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
        f"The body is not valid JSON: {message} (at character {position}).",
        kind=SCHEMA,
        param=f"body.{position}",
    )


def schema(errors: Sequence[Any]) -> Refusal:
    """The body does not meet the schema; ``errors`` are pydantic's."""
    fields = [".".join(("body", *(str(part) for part in error["loc"]))) for error in errors]
    told = "; ".join(
        f"{field}: {error['msg']}" for field, error in zip(fields, errors, strict=True)
    )
    plural = "s" if len(fields) > 1 else ""
    return Refusal(f"{len(fields)} validation error{plural}: {told}", kind=SCHEMA, param=fields[0])
