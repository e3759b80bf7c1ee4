"""The schemas of what vLLM 0.33 takes and answers, as its OpenAPI document has them.

``data/openapi.json`` has them in short: ``"str"`` or the name of another one, with ``?`` where null
may stand for it; ``["or", …]``, ``["list", of]``, ``["map", to]``, ``["is", value, …]``;
``["with", schema, {…}]`` for what is said beside it. An object names its fields, ``!`` those that
must be there, and under ``""`` what else is said of it; null takes away what goes without saying.
Titles are those that pydantic makes of names.
"""

import functools
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

Schema = dict[str, Any]

REFERENCE = "#/components/schemas/"
_DATA = "data/openapi.json"
_PLAIN: Mapping[str, Schema] = {
    "any": {},
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "null": {"type": "null"},
    "object": {"additionalProperties": True, "type": "object"},
}


@functools.cache
def table() -> Mapping[str, Any]:
    """All that is in the file."""
    text = resources.files(__package__).joinpath(_DATA).read_text(encoding="utf-8")
    found: Mapping[str, Any] = json.loads(text)
    return found


def component(name: str, told: Any) -> Schema:
    """A schema that has a name."""
    return {"title": name, **schema(told)} if isinstance(told, list) else _object(name, told)


def schema(told: Any) -> Schema:
    """What a name or an expression stands for."""
    if isinstance(told, str) and told.endswith("?"):
        return {"anyOf": [schema(told[:-1]), _PLAIN["null"]]}
    if isinstance(told, str):
        return dict(_PLAIN[told]) if told in _PLAIN else {"$ref": REFERENCE + told}
    kind, *rest = told
    if kind == "or":
        return {"anyOf": [schema(each) for each in rest]}
    if kind == "list":
        return {"items": schema(rest[0]), "type": "array"}
    if kind == "map":
        return {"additionalProperties": schema(rest[0]), "type": "object"}
    if kind == "is":
        return {"type": "string", **({"const": rest[0]} if len(rest) == 1 else {"enum": rest})}
    return _with(schema(rest[0]), rest[1])


def _with(made: Schema, more: Mapping[str, Any]) -> Schema:
    """A schema with more said of it. A default may be null; any other null takes away."""
    said = made | dict(more)
    return {key: each for key, each in said.items() if each is not None or key == "default"}


def _object(name: str, told: Mapping[str, Any]) -> Schema:
    fields = {field.removesuffix("!"): each for field, each in told.items() if field}
    made: Schema = {
        "properties": {field: _field(field, each) for field, each in fields.items()},
        "additionalProperties": True,
        "type": "object",
        "title": name,
    }
    required = [field.removesuffix("!") for field in told if field.endswith("!")]
    made |= {"required": required} if required else {}
    return _with(made, told.get("", {}))


def _field(name: str, told: Any) -> Schema:
    """The schema of a field, with its title, unless it is another one's, or that or nothing."""
    made = schema(told)
    branches = [each for each in made.get("anyOf", ()) if each != _PLAIN["null"]]
    borrowed = [made, branches[0]] if len(branches) == 1 else [made]
    if any("$ref" in each for each in borrowed):
        return made
    return _with({"title": name.replace("_", " ").title()}, made)
