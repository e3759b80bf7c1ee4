"""What the admin endpoint says of itself: an OpenAPI document."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from servelab.engine.admin import documents

_TEMPLATE = "#/components/schemas/{model}"
_WHOSE = {"": "of the only engine", "/engines/{engine}": "of that engine"}
_PARAMETER = re.compile(r"{(\w+)}")
_ERRORS = {
    "400": "the document cannot be used; `error` says where and why",
    "401": "the bearer token is missing or wrong",
    "404": "no such path, engine, metric or fault",
}


def document(engines: Mapping[str, str], version: str) -> dict[str, Any]:
    """The OpenAPI document; ``engines`` are names and addresses."""
    paths: dict[str, Any] = {"/engines": {"get": _operation("names, addresses, faults that hold")}}
    for prefix, whose in _WHOSE.items():
        paths |= {
            f"{prefix}/queue": _resource("Queue", f"queue metrics that are shown {whose}"),
            f"{prefix}/queue/{{metric}}": _resource("Wave", "one of them"),
            f"{prefix}/faults": _resource("Faults", f"what goes wrong {whose}"),
            f"{prefix}/faults/{{kind}}": _resource("Fault", "one of them"),
        }
    choices = {"engine": tuple(engines), "metric": documents.METRICS, "kind": documents.KINDS}
    for path, operations in paths.items():
        operations["parameters"] = [
            _parameter(name, choices[name]) for name in _PARAMETER.findall(path)
        ]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "servelab engine admin",
            "version": version,
            "description": "Changes queue metrics and faults at run time. A metric is a number or "
            "a wave; times are emulated seconds from the PUT on.",
        },
        "x-engines": dict(engines),
        "paths": paths,
        "components": {"schemas": _schemas()},
    }


def _schemas() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for model in (documents.Queue, documents.Faults):
        schema = model.model_json_schema(ref_template=_TEMPLATE)
        found |= schema.pop("$defs", {})
        found[model.__name__] = schema
    waves = ("Fixed", "Ramp", "Square", "Sine")
    found["Wave"] = {"oneOf": [{"type": "number"}, *(_reference(name) for name in waves)]}
    kinds = [name.title().replace("_", "") for name in documents.KINDS]
    found["Fault"] = {"oneOf": [_reference(name) for name in kinds]}
    return found


def _reference(model: str) -> dict[str, str]:
    return {"$ref": _TEMPLATE.format(model=model)}


def _operation(summary: str, body: str | None = None) -> dict[str, Any]:
    answers = {"200": "what is set, and what it does now", **_ERRORS}
    found: dict[str, Any] = {
        "summary": summary,
        "responses": {status: {"description": text} for status, text in answers.items()},
    }
    if body is not None:
        content = {"application/json": {"schema": _reference(body)}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _resource(model: str, what: str) -> dict[str, Any]:
    return {
        "get": _operation(f"Show {what}."),
        "put": _operation(f"Set {what}.", model),
        "delete": _operation(f"Back to the truth: {what}."),
    }


def _parameter(name: str, choices: Sequence[str]) -> dict[str, Any]:
    schema = {"type": "string", "enum": list(choices)}
    return {"name": name, "in": "path", "required": True, "schema": schema}
