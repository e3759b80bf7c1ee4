"""What llguidance 1.7 cannot do of a JSON schema, of those that vLLM 0.33 gives to it.

What stands beside a reference must be met as well, and there is no other document to refer to.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from servelab.engine.surfaces.vllm import patterns, xgrammar

Part = Mapping[str, Any]

FORMATS = frozenset(
    {
        *("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"),
        *("uri", "uri-reference", "uri-template", "json-pointer", "relative-json-pointer"),
    }
)
_UNKNOWN = frozenset(
    {
        *("uniqueItems", "contains", "minContains", "maxContains", "propertyNames", "not", "if"),
        *("unevaluatedProperties", "unevaluatedItems", "dependentRequired", "dependentSchemas"),
    }
)
# Words that say nothing of what is taken.
_SILENT = frozenset(
    {"$defs", "definitions", "title", "description", "default", "examples", "$schema"}
)
_BRANCHES = ("anyOf", "oneOf", "allOf")
_READ_BY: Mapping[str, str] = {
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), "string"),
    **dict.fromkeys(("minItems", "maxItems"), "array"),
    **dict.fromkeys(("minProperties", "maxProperties", "required"), "object"),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), "number"),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), "number"),
}
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_NUMBERS = ("minimum", "maximum", "multipleOf")
_ESCAPED = re.compile(r"%([0-7][0-9A-Fa-f])")
_DEEPEST = 64  # references within references


def fault(schema: Any) -> str | None:
    """What it cannot do of a schema; None if it can do all."""
    outside = next(filter(None, map(_outside, objects(schema))), None)
    if outside is not None:
        return outside
    level: list[Any] = [schema]
    seen: set[str] = set()
    while level:
        if not all(isinstance(each, dict | bool) for each in level):
            return "a schema must be an object or a boolean"
        parts = [_read(each) for each in level if isinstance(each, dict)]
        for part in parts:
            wrong = _part_fault(part, schema)
            if wrong is not None:
                return wrong
        level = [child for part in parts for child in _children(part)]
        for pointer in (part["$ref"] for part in parts if "$ref" in part):
            if pointer not in seen:
                seen.add(pointer)
                level.append(_found(schema, pointer))
    return None


def objects(value: Any) -> Iterator[Part]:
    """All objects in a document, whether or not they are schemas."""
    level = [value]
    while level:
        found = [each for each in level if isinstance(each, dict)]
        yield from found
        level = [child for each in level if isinstance(each, list) for child in each]
        level += [child for each in found for child in each.values()]


def _outside(part: Part) -> str | None:
    """Whether it refers to another document, which is looked at wherever it stands."""
    pointer = part.get("$ref", "#")
    lies_outside = isinstance(pointer, str) and not pointer.startswith("#") and pointer
    return f"{pointer} is not in this document" if lies_outside else None


def _read(part: Part) -> Part:
    """A schema without the words that its types do not read."""
    kinds = xgrammar.kinds(part)
    kinds |= {"number"} if "integer" in kinds else set()
    if not kinds:
        return part
    return {word: value for word, value in part.items() if _READ_BY.get(word, "") in {"", *kinds}}


def _children(part: Part) -> Iterator[Any]:
    for name in (*_BRANCHES, "prefixItems"):
        yield from part.get(name, ())
    yield from part.get("properties", {}).values()
    for name in ("items", "additionalProperties"):
        if isinstance(part.get(name), list):
            yield from part[name]
        elif name in part:
            yield part[name]


def _part_fault(part: Part, root: Any) -> str | None:
    return next((wrong for check in _CHECKS if (wrong := check(part, root)) is not None), None)


def _shape_fault(part: Part, root: Any) -> str | None:
    unknown = next((f"{name} is not supported" for name in part if name in _UNKNOWN), None)
    return xgrammar.type_fault(part) or xgrammar.shape_fault(part) or unknown


def _text_fault(part: Part, root: Any) -> str | None:
    form, pattern = part.get("format", "date"), part.get("pattern", "")
    if not isinstance(form, str) or form not in FORMATS:
        return f"there is no format {form!r}"
    return patterns.fault(pattern) if isinstance(pattern, str) else "pattern must be a text"


def _required_fault(part: Part, root: Any) -> str | None:
    properties, required = part.get("properties", {}), part.get("required", [])
    if part.get("maxProperties", math.inf) < len(required):
        return "more is required than may be there"
    barred = [name for name in required if properties.get(name) is False]
    return f"{barred[0]} is required and must not be there" if barred else None


def _bound_fault(part: Part, root: Any) -> str | None:
    for name in _COUNTS:
        value = part.get(name, 0)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            return f"{name} must be a whole number, and not negative"
    for name in _NUMBERS:
        value = part.get(name, 1)
        if not isinstance(value, int | float) or isinstance(value, bool):
            return f"{name} must be a number"
    for name in ("exclusiveMinimum", "exclusiveMaximum"):
        if not isinstance(part.get(name, 1), int | float):
            return f"{name} must be a number"
    if part.get("multipleOf", 1) == 0:
        return "multipleOf must not be 0"
    pairs = zip(_COUNTS[::2], _COUNTS[1::2], strict=True)
    empty = [names for names in pairs if part.get(names[0], 0) > part.get(names[1], math.inf)]
    if empty:
        return f"{empty[0][0]} and {empty[0][1]} leave nothing"
    return xgrammar.range_fault(part)


def _reference_fault(part: Part, root: Any) -> str | None:
    pointer = part.get("$ref", "#")
    if not isinstance(pointer, str):
        return "$ref must be a text"
    return f"{pointer} points nowhere" if _found(root, pointer) is None else None


def _together_fault(part: Part, root: Any) -> str | None:
    """Whether all that must be met together excludes itself, or leads back to itself."""
    told = [xgrammar.kinds(each) for each in part.get("allOf", ()) if isinstance(each, Mapping)]
    kinds = [found | ({"integer"} if "number" in found else set()) for found in told if found]
    if kinds and not set.intersection(*kinds):
        return "its parts exclude each other"
    alone = "$ref" in part and part.keys() - _SILENT == {"$ref"}
    return None if alone else _circle_fault(part, root, ())


def _circle_fault(part: Any, root: Any, past: Sequence[str]) -> str | None:
    if not isinstance(part, Mapping):
        return None
    if isinstance(pointer := part.get("$ref"), str):
        if pointer in past or len(past) > _DEEPEST:
            return f"{pointer} leads back to itself"
        return _circle_fault(_found(root, pointer), root, (*past, pointer))
    together = part.get("allOf", ())
    found = (_circle_fault(each, root, past) for each in together if isinstance(together, list))
    return next(filter(None, found), None)


def _found(root: Any, pointer: str) -> Any:
    """What a pointer into a schema points to; None if to nothing."""
    reached = root
    decoded = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), pointer.removeprefix("#"))
    for step in decoded.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(reached, list) and name.isdecimal() and int(name) < len(reached):
            reached = reached[int(name)]
        elif isinstance(reached, dict) and name in reached:
            reached = reached[name]
        else:
            return None
    return None if pointer.strip("#") and not pointer.startswith("#/") else reached


_CHECKS: Sequence[Callable[[Part, Any], str | None]] = (
    _shape_fault,
    _text_fault,
    _bound_fault,
    _required_fault,
    _reference_fault,
    _together_fault,
)
