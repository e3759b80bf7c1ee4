"""Reading a request's body: what a gateway must know of it, and no more.

What only an engine can judge is left to the engine; what could never be answered is refused here,
before it wakes a model.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

from modelserve.gateway import answers

_KINDS = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
    type(None): "null",
}


@dataclass(frozen=True, slots=True)
class Call:
    """A request for a model."""

    path: str
    model: str
    streamed: bool
    body: bytes

    def addressed_to(self, served_name: str) -> "Call":
        """The same call under the name that the engine serves."""
        if self.model == served_name:
            return self
        body = json.dumps(json.loads(self.body) | {"model": served_name}).encode()
        return replace(self, body=body)


def parse_call(path: str, body: bytes, content_type: str = answers.JSON) -> Call:
    """Read the body of a POST. Raises answers.BadCall with what is wrong and where."""
    if content_type != answers.JSON and not content_type.endswith("+json"):
        # Engines refuse it too, with the same status; but then it would have woken one first.
        raise answers.bad_request(
            f"the content type must be application/json, not {content_type}", code="invalid_content"
        )
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        what = str(error) if isinstance(error, json.JSONDecodeError) else "it cannot be decoded"
        raise answers.bad_request(
            f"the body is no valid JSON: {what}", code="invalid_json"
        ) from None
    if not isinstance(content, dict):
        raise answers.bad_request(f"the body must be a JSON object, not {_kind(content)}")
    model = content.get("model")
    if model is None or model == "":
        raise answers.bad_request("'model' is missing: name the model to ask", "model")
    _check(content, "model", str)
    _check(content, "stream", bool)
    if path == "/v1/chat/completions":
        _check(content, "messages", list)
        if not content.get("messages"):
            raise answers.bad_request("'messages' is missing or empty", "messages")
    elif path == "/v1/completions" and content.get("prompt") is None:
        raise answers.bad_request("'prompt' is missing", "prompt")
    return Call(path, model, content.get("stream") is True, body)


def _check(content: dict[str, Any], param: str, wanted: type) -> None:
    value = content.get(param)
    if value is not None and not isinstance(value, wanted):
        message = f"'{param}' must be {_KINDS[wanted]}, not {_kind(value)}"
        raise answers.bad_request(message, param, "invalid_type")


def _kind(value: object) -> str:
    return _KINDS[type(value)]
