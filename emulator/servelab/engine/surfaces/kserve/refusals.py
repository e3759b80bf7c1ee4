"""How the model server says no: its own errors, and vLLM's in OpenAI's shape."""

import json

from modelserve.errors import ModelServeError
from servelab.engine.exchange import Response
from servelab.engine.surfaces import fastapi


class Refused(ModelServeError):
    """An error of the model server itself."""

    def __init__(self, message: str, status: int) -> None:
        self.status = status
        super().__init__(message)

    def response(self) -> Response:
        """The whole answer."""
        return fastapi.document({"error": str(self)}, self.status)


class Unsupported(ModelServeError):
    """The model does not speak a part of OpenAI's API; in its shape."""

    def __init__(self, what: str) -> None:
        super().__init__(f"The model does not support {what} API")

    def response(self) -> Response:
        """The whole answer."""
        told = {"code": "400", "message": str(self), "param": "", "type": "BadRequestError"}
        return fastapi.document({"error": told}, 400)


def unknown_model(name: str | None) -> Refused:
    """No model of that name is registered."""
    return Refused(f"Model with name {name} does not exist.", 404)


def not_ready(name: str) -> Refused:
    """The model loads, or stops."""
    return Refused(f"Model with name {name} is not ready.", 503)


def no_versions() -> Refused:
    """A path with a version of a model."""
    return Refused("Model versioning not supported yet.", 501)


def no_inference() -> Refused:
    """A tensor is asked of a model that speaks OpenAI's API alone."""
    message = "ValueError : Model of type VLLMModel does not support inference"
    return Refused(message, 500)


def openai(refused: Response) -> Response:
    """vLLM's answer as the model server passes it on: the code is a text here."""
    error = json.loads(refused.body)["error"]
    told = {
        "code": str(error["code"]),
        "message": error["message"],
        "param": error["param"],
        "type": error["type"],
    }
    return fastapi.document({"error": told}, refused.status)
