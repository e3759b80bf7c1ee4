"""Which patterns and JSON schemas vLLM 0.33 takes.

It asks xgrammar, and llguidance for what xgrammar cannot do; what both refuse is bad.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

_TYPES = frozenset({"string", "number", "integer", "boolean", "null", "object", "array"})
_FORMATS = frozenset(
    {
        *("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"),
        *("uri", "uri-reference", "uri-template", "json-pointer", "relative-json-pointer"),
    }
)
# Of an array: xgrammar passes them on to llguidance, which does not know them.
_UNKNOWN_WORDS = ("uniqueItems", "contains", "minContains", "maxContains")
_LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS_OF_SCHEMAS = ("properties",)
_SCHEMAS = ("items", "additionalProperties", "propertyNames")
_BOUNDS = (
    *(("minLength", "maxLength"), ("minItems", "maxItems"), ("minProperties", "maxProperties")),
    *(("minimum", "maximum"), ("exclusiveMinimum", "exclusiveMaximum")),
)
_NUMBERS = frozenset({"integer", "number"})
# Of which types a word says something; of others it is not even read.
_READ_BY: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), frozenset({"string"})),
    **dict.fromkeys(("minItems", "maxItems", *_UNKNOWN_WORDS), frozenset({"array"})),
    **dict.fromkeys(("items", "prefixItems"), frozenset({"array", ""})),
    **dict.fromkeys(("minProperties", "maxProperties", "propertyNames"), frozenset({"object"})),
    **dict.fromkeys(("properties", "additionalProperties"), frozenset({"object", ""})),
    "required": frozenset({"object"}),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), _NUMBERS),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), _NUMBERS),
}
_NOT_NEGATIVE = frozenset({"minLength", "maxItems", "minProperties", "maxProperties"})

_TOKEN = re.compile(
    r"(?P<escape>\\[pPux]\{[^}]*\}|\\.)|(?P<class>\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\])"
    r"|(?P<group>\((?:\?(?::|P?<[A-Za-z_]\w*>|[imsUux-]+[:)]))?)|(?P<count>\{(\d+)(,(\d*))?\})"
    r"|(?P<bad>[\[{]|\(\?)|(?P<end>\))|(?P<repeat>[*+?])|(?P<other>.)",
    re.DOTALL,
)
_RANGE = re.compile(r"(?<![\\\[^])([^\\])-([^\]\\])")


def pattern_fault(pattern: str) -> str | None:
    """What is wrong with a regular expression; None if nothing is."""
    depth, repeatable = 0, False
    for match in _TOKEN.finditer(pattern):
        kind, text = match.lastgroup, match.group()
        fault = _token_fault(match, depth, repeatable=repeatable)
        if fault is not None:
            return fault
        opens = kind == "group" and not text.endswith(")")
        depth += opens - (kind == "end")
        repeatable = not (kind == "group" or text == "|")
    return "a bracket is not closed" if depth else None


def _token_fault(match: re.Match[str], depth: int, *, repeatable: bool) -> str | None:
    kind, text = match.lastgroup, match.group()
    if kind == "escape" and (text[1] in "bBk" or text[1] in "123456789"):
        return f"{text} is not supported"
    if kind == "bad" or (kind == "group" and _looks(match)):
        return f"{text} is not supported, or not closed"
    if kind == "class" and any(low > high for low, high in _RANGE.findall(text[1:-1])):
        return f"the range in {text} is empty"
    if kind == "count" and match[7] and int(match[5]) > int(match[7]):
        return f"the count {text} is empty"
    if kind in ("repeat", "count") and not repeatable:
        return f"{text} has nothing to repeat"
    return f"{text} closes nothing" if kind == "end" and not depth else None


def _looks(match: re.Match[str]) -> bool:
    """Whether a group begins with a mark that is none of those known, as where it looks around."""
    return match.group() == "(" and match.string.startswith("?", match.end())


def schema_fault(schema: Any) -> str | None:
    """What is wrong with a JSON schema; None if nothing is.

    What it only defines is looked at where something refers to it.
    """
    level: list[Any] = [schema]
    seen: set[str] = set()
    while level:
        for each in level:
            if not isinstance(each, dict | bool):
                return "a schema must be an object or a boolean"
        parts = [_read(each) for each in level if isinstance(each, dict)]
        for part in parts:
            fault = _part_fault(part, schema)
            if fault is not None:
                return fault
        level = [child for part in parts for child in _children(part)]
        for pointer in (part["$ref"] for part in parts if "$ref" in part):
            if pointer.startswith("#/") and pointer not in seen:
                seen.add(pointer)
                level.append(_found(schema, pointer))
    return None


def _read(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema without the words that its types do not read."""
    kinds = _kinds(part) or {""}
    unread = [word for word in part if word in _READ_BY and kinds.isdisjoint(_READ_BY[word])]
    return {word: value for word, value in part.items() if word not in unread} if unread else part


def _part_fault(part: Mapping[str, Any], root: Any) -> str | None:
    return next((found for check in _CHECKS if (found := check(part, root)) is not None), None)


def _type_fault(part: Mapping[str, Any], root: Any) -> str | None:
    kinds = part.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
        return "type must be a text or a list of texts"
    unknown = [kind for kind in kinds if kind not in _TYPES]
    return f"there is no type {unknown[0]!r}" if unknown else None


def _shape_fault(part: Mapping[str, Any], root: Any) -> str | None:
    for name in (*_LISTS_OF_SCHEMAS, "enum"):
        if not isinstance(part.get(name, []), list):
            return f"{name} must be a list"
    if part.get("enum") == []:
        return "enum must not be empty"
    wrong = [name for name in _MAPS_OF_SCHEMAS if not isinstance(part.get(name, {}), dict)]
    return f"{wrong[0]} must be an object" if wrong else None


def _word_fault(part: Mapping[str, Any], root: Any) -> str | None:
    unknown = [name for name in _UNKNOWN_WORDS if name in part]
    if unknown:
        return f"{unknown[0]} is not supported"
    form, pattern = part.get("format", "date"), part.get("pattern", "")
    if not isinstance(form, str) or form not in _FORMATS:
        return f"there is no format {form!r}"
    if not isinstance(pattern, str):
        return "pattern must be a text"
    # xgrammar reads over what looks around; what neither can read ends here.
    return None if "(?" in pattern or "\\" in pattern else pattern_fault(pattern)


def _required_fault(part: Mapping[str, Any], root: Any) -> str | None:
    properties, required = part.get("properties", {}), part.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        return "required must be a list of texts"
    barred = [name for name in required if properties.get(name) is False]
    if barred:
        return f"{barred[0]} is required and must not be there"
    most = part.get("maxProperties")
    if isinstance(most, int) and most < len(required):
        return "more is required than may be there"
    return None


def _bound_fault(part: Mapping[str, Any], root: Any) -> str | None:
    for names in _BOUNDS:
        low, high = (part.get(name) for name in names)
        for name, value in zip(names, (low, high), strict=True):
            if value is not None and not isinstance(value, int | float):
                return f"{name} must be a number"
            if name in _NOT_NEGATIVE and (value or 0) < 0:
                return f"{name} must not be negative"
        if low is None or high is None:
            continue
        if low > high or (low == high and names[0] == "exclusiveMinimum"):
            return f"{names[0]} and {names[1]} leave nothing"
    step = part.get("multipleOf")
    if step is not None and not isinstance(step, int | float):
        return "multipleOf must be a number"
    return "multipleOf must not be 0" if step == 0 else _integer_fault(part)


def _integer_fault(part: Mapping[str, Any]) -> str | None:
    """Whether there is no whole number between the bounds of one."""
    low, high = part.get("minimum", -math.inf), part.get("maximum", math.inf)
    above, below = part.get("exclusiveMinimum"), part.get("exclusiveMaximum")
    if isinstance(above, int | float) and not isinstance(above, bool):
        low = max(low, math.floor(above) + 1)
    if isinstance(below, int | float) and not isinstance(below, bool):
        high = min(high, math.ceil(below) - 1)
    bounded = "integer" in _kinds(part) and -math.inf < low and high < math.inf
    if bounded and math.ceil(low) > math.floor(high):
        return "there is no whole number in its bounds"
    return None


def _together_fault(part: Mapping[str, Any], root: Any) -> str | None:
    """Whether parts that all must be met are of types that exclude each other."""
    told = [_kinds(each) for each in part.get("allOf", ()) if isinstance(each, Mapping)]
    kinds = [found | ({"integer"} if "number" in found else set()) for found in told if found]
    return "its parts exclude each other" if kinds and not set.intersection(*kinds) else None


def _reference_fault(part: Mapping[str, Any], root: Any) -> str | None:
    pointer = part.get("$ref", "#")
    if not isinstance(pointer, str):
        return "$ref must be a text"
    if not pointer.startswith("#/"):
        return None
    return f"{pointer} points nowhere" if _found(root, pointer) is None else None


def _found(root: Any, pointer: str) -> Any:
    """What a pointer into a schema points to; None if to nothing."""
    found = root
    for step in pointer[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    return found


def _kinds(part: Mapping[str, Any]) -> set[str]:
    """The types that it names."""
    kinds = part.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    return {kind for kind in kinds if isinstance(kind, str)}


def _children(part: Mapping[str, Any]) -> Iterator[Any]:
    for name in _LISTS_OF_SCHEMAS:
        yield from part.get(name, ())
    for name in _MAPS_OF_SCHEMAS:
        yield from part.get(name, {}).values()
    for name in _SCHEMAS:
        found = part.get(name)
        if name == "items" and isinstance(found, list):
            yield from found
        elif found is not None:
            yield found


_CHECKS: Sequence[Callable[[Mapping[str, Any], Any], str | None]] = (
    _type_fault,
    _shape_fault,
    _word_fault,
    _required_fault,
    _bound_fault,
    _reference_fault,
    _together_fault,
)
