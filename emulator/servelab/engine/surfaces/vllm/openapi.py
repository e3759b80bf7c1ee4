"""What vLLM 0.33 tells of itself as OpenAPI: paths, operations, and what they take and answer."""

import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from servelab.engine.exchange import JSON, Route
from servelab.engine.surfaces import events
from servelab.engine.surfaces.vllm import openapi_schemas

_INVALID = "HTTPValidationError"


def document(routes: Sequence[Route]) -> bytes:
    """The document of a server with these routes, as JSON."""
    return _made(tuple((route.method, route.path) for route in routes))


@functools.lru_cache(maxsize=4)
def _made(routes: Sequence[tuple[str, str]]) -> bytes:
    return events.compact(_document(routes))


def _document(routes: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """What is told of those of the routes that are told of at all."""
    told = openapi_schemas.table()["operations"]
    paths: dict[str, dict[str, Any]] = {}
    for method, path in routes:
        found = told.get(f"{method} {path}")
        if found is not None:
            paths.setdefault(path, {})[method.lower()] = _operation(found, path, method.lower())
    info = {"title": "FastAPI", "version": "0.1.0"}
    components = {"schemas": _schemas(paths)}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": components}


def _operation(told: Mapping[str, Any], path: str, method: str) -> dict[str, Any]:
    name = re.sub(r"\W", "_", f"{told['name']}{path}")
    made: dict[str, Any] = {"summary": told["name"].replace("_", " ").title()}
    made |= {key: told[key] for key in ("description", "parameters") if key in told}
    made["operationId"] = f"{name}_{method}"
    if "takes" in told:
        made["requestBody"] = {"content": _content({JSON: told["takes"]}), "required": True}
        schema = made["requestBody"]["content"][JSON]["schema"]
        schema |= {"title": "Request"} if "anyOf" in schema else {}
    gives = _content(told.get("gives", {JSON: "any"}))
    found = {"description": told.get("answers", "Successful Response")}
    made["responses"] = {"200": found | ({"content": gives} if gives else {})}
    for status in told.get("refuses", ()):
        refusal = _content({JSON: told.get("error", "ErrorResponse")})
        phrase = HTTPStatus(status).phrase
        made["responses"][str(status)] = {"description": phrase, "content": refusal}
    if "takes" in told or "parameters" in told:
        invalid = {"description": "Validation Error", "content": _content({JSON: _INVALID})}
        made["responses"]["422"] = invalid
    return made


def _content(told: Mapping[str, Any]) -> dict[str, Any]:
    """Schemas by content type; null where nothing is said of one."""
    return {
        kind: {} if each is None else {"schema": openapi_schemas.schema(each)}
        for kind, each in told.items()
    }


def _schemas(paths: Mapping[str, Any]) -> dict[str, Any]:
    """All that is referred to, under its name, in the order of the alphabet."""
    table = openapi_schemas.table()
    known = table["schemas"] | (table["pooling"] if "/v1/embeddings" in paths else {})
    made: dict[str, Any] = {}
    wanted: Collection[str] = set(_referred(paths))
    while wanted:
        found = {name: openapi_schemas.component(name, known[name]) for name in wanted}
        made |= found
        wanted = set(_referred(found)) - made.keys()
    return dict(sorted(made.items()))


def _referred(told: Any) -> Iterator[str]:
    """The names of the schemas that a part of the document refers to."""
    level = [told]
    while level:
        objects = [each for each in level if isinstance(each, dict)]
        for each in objects:
            if isinstance(pointer := each.get("$ref"), str):
                yield pointer.removeprefix(openapi_schemas.REFERENCE)
        level = [child for each in level if isinstance(each, list) for child in each]
        level += [child for each in objects for child in each.values()]
