"""What servers built on FastAPI have in common: how a body is read and refused, bare details."""

import json
import urllib.parse
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from modelserve.errors import ModelServeError
from servelab.engine import exchange as exchanges
from servelab.engine.exchange import Request, Response, Route
from servelab.engine.surfaces import events

SERVER = "uvicorn"
# What is said of a body that is no text in UTF-8, nested too deeply, or holds a number too long.
UNREADABLE = "There was an error parsing the body"
# What Starlette leaves as it is in the address it redirects to.
_KEPT = ":/%#?=@[]!$&'()*+,;"

BodyT = TypeVar("BodyT", bound=BaseModel)


class Application:
    """What the surface of such a server answers as all of them do. ``_routes`` are its paths."""

    server: str | None = SERVER
    vary: str | None = None
    _routes: Sequence[Route]

    def routes(self) -> Sequence[Route]:
        """All paths it knows."""
        return self._routes

    def not_found(self, request: Request) -> Response:
        """The way to the path without its last slash, or a detail."""
        return not_found(request, self._routes)

    def wrong_method(self, request: Request, allowed: Sequence[str]) -> Response:
        """A detail; the router names the method of the path's first route only."""
        named = ", ".join(allowed) if "HEAD" in allowed else allowed[0]
        return wrong_method([named])

    def unready(self, request: Request) -> Response:
        """It does not listen while it loads."""
        return Response(503, content_type=None)


class HttpError(ModelServeError):
    """An HTTPException: a status, and a detail in words."""

    def __init__(self, detail: str, status: int) -> None:
        self.status = status
        super().__init__(detail)

    def response(self) -> Response:
        """The whole answer."""
        return document({"detail": str(self)}, self.status)


class Unprocessable(ModelServeError):
    """The body does not meet the schema: a list of where, after pydantic's errors."""

    def __init__(self, errors: Sequence[Mapping[str, Any]]) -> None:
        self._errors = errors
        super().__init__("the body does not meet the schema")

    def response(self) -> Response:
        """The whole answer."""
        detail = [{name: _plain(name, each[name]) for name in each} for each in self._errors]
        return document({"detail": detail}, 422)


def _plain(name: str, value: Any) -> Any:
    if name == "loc":
        return ["body", *value]
    if name == "ctx":
        return {key: {} if isinstance(each, Exception) else each for key, each in value.items()}
    return value


def document(content: object, status: int = 200) -> Response:
    """An answer in JSON."""
    return Response(status, events.compact(content))


def not_found(request: Request, routes: Sequence[Route]) -> Response:
    """The answer to a path that has no route: the way to it without its last slash, or a detail."""
    _, mark, query = request.target.partition("?")
    bare = request.path.rstrip("/")
    if bare not in ("", request.path) and any(exchanges.fits(each.path, bare) for each in routes):
        url = f"http://{request.headers.get('host', '')}{bare}{mark}{query}"
        where = urllib.parse.quote(url, safe=_KEPT)
        return Response(307, content_type=None, headers=(("Location", where),))
    return document({"detail": HTTPStatus.NOT_FOUND.phrase}, 404)


def wrong_method(allowed: Sequence[str]) -> Response:
    """The answer to a path under another method; it names that of the path's first route."""
    body = events.compact({"detail": HTTPStatus.METHOD_NOT_ALLOWED.phrase})
    return Response(405, body, headers=(("Allow", allowed[0]),))


def loaded(request: Request) -> Any:
    """A body as JSON. Raises Unprocessable or HttpError."""
    if not request.body:
        missing: dict[str, Any] = {
            "type": "missing",
            "loc": [],
            "msg": "Field required",
            "input": None,
        }
        raise Unprocessable([missing])
    try:
        return json.loads(request.body)
    except json.JSONDecodeError as error:
        broken = {"type": "json_invalid", "loc": [error.pos], "msg": "JSON decode error"}
        raise Unprocessable([broken | {"input": {}, "ctx": {"error": error.msg}}]) from None
    except (ValueError, RecursionError):
        raise HttpError(UNREADABLE, 400) from None


def validated(kind: type[BodyT], content: Any) -> BodyT:
    """JSON as its model. Raises Unprocessable."""
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        told: Sequence[Any] = error.errors(include_url=False)
        raise Unprocessable(told) from None
