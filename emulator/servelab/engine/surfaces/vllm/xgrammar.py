"""What xgrammar 0.2.8 makes of a JSON schema, as vLLM 0.33 has it do.

Of an object it reads ``$ref`` alone if that is there, else ``const``, ``enum`` or branches, else
what belongs to its types. What it only defines is looked at where something refers to it.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from servelab.engine.surfaces.vllm import patterns

Part = Mapping[str, Any]

_TYPES = frozenset({"string", "number", "integer", "boolean", "null", "object", "array"})
_BRANCHES = ("anyOf", "oneOf", "allOf")
# Words of which the first one found is all that is read.
_ALONE = ("$ref", "const", "enum", *_BRANCHES)
_NUMBERS = frozenset({"integer", "number"})
_IMPLY = {
    "object": {"properties", "additionalProperties", "unevaluatedProperties"},
    "array": {"items", "prefixItems", "unevaluatedItems"},
}
# Of which types a word says something.
_READ_BY: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), frozenset({"string"})),
    **dict.fromkeys(("minItems", "maxItems", "items", "prefixItems"), frozenset({"array"})),
    **dict.fromkeys(("minProperties", "maxProperties", "propertyNames"), frozenset({"object"})),
    **dict.fromkeys(("properties", "patternProperties", "required"), frozenset({"object"})),
    "additionalProperties": frozenset({"object"}),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), _NUMBERS),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), _NUMBERS),
}
_RANGES = (("minLength", "maxLength"), ("minItems", "maxItems"), ("minProperties", "maxProperties"))
_COUNTS = tuple(name for names in _RANGES for name in names)
_NOT_NEGATIVE = frozenset({"minLength", "maxItems", "minProperties", "maxProperties"})
_FAR = 10**400  # beyond what a number of a schema can be
_LIMITS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def fault(schema: Any) -> str | None:
    """What it cannot read in a schema; None if it can read all."""
    level: list[Any] = [schema]
    seen: set[str] = set()
    while level:
        parts: list[Part] = []
        for each in level:
            if not isinstance(each, dict | bool):
                return "a schema must be an object or a boolean"
            if each is False:
                return "nothing meets false"
            parts += [_read(each)] if isinstance(each, dict) else []
        for part in parts:
            wrong = _part_fault(part, schema)
            if wrong is not None:
                return wrong
        level = [child for part in parts for child in _children(part)]
        for pointer in (part["$ref"] for part in parts if "$ref" in part):
            if pointer.startswith("#/") and pointer not in seen:
                seen.add(pointer)
                level.append(found(schema, pointer))
    return None


def begins(schema: Any) -> bool:
    """Whether any text begins a value of a sound schema.

    None does where all that is referred to refers to itself: the first token is one too many then.
    """
    level: list[Any] = [schema]
    seen: set[str] = set()
    while level:
        ways: list[Any] = []
        for part in map(_read, level):
            pointer = part.get("$ref")
            branches = [each for name in _BRANCHES for each in part.get(name, ())]
            if not (branches or (isinstance(pointer, str) and pointer.startswith("#"))):
                return True
            ways += branches
            if isinstance(pointer, str) and pointer not in seen:
                seen.add(pointer)
                ways.append(found(schema, pointer))
        level = ways
    return False


def found(root: Any, pointer: str) -> Any:
    """What a pointer into a schema points to; None if to nothing. Empty steps lead nowhere else."""
    reached = root
    for name in filter(None, pointer.removeprefix("#").split("/")):
        if not isinstance(reached, dict) or name not in reached:
            return None
        reached = reached[name]
    return reached


def kinds(part: Part) -> set[str]:
    """The types that a schema names."""
    named = part.get("type", [])
    named = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    return {kind for kind in named if isinstance(kind, str)}


def type_fault(part: Part, root: Any = None) -> str | None:
    """Whether it names something that is no type."""
    named = part.get("type", [])
    named = [named] if isinstance(named, str) else named
    if not isinstance(named, list) or not all(isinstance(kind, str) for kind in named):
        return "type must be a text or a list of texts"
    unknown = [kind for kind in named if kind not in _TYPES]
    return f"there is no type {unknown[0]!r}" if unknown else None


def shape_fault(part: Part) -> str | None:
    """Whether a word of it is no list, or no object, where it has to be one."""
    for name in (*_BRANCHES, "enum", "prefixItems", "required"):
        if not isinstance(part.get(name, []), list):
            return f"{name} must be a list"
    if part.get("enum") == []:
        return "enum must not be empty"
    for name in ("properties", "patternProperties"):
        if not isinstance(part.get(name, {}), dict):
            return f"{name} must be an object"
    if not all(isinstance(name, str) for name in part.get("required", ())):
        return "required must hold texts"
    return None


def range_fault(part: Part) -> str | None:
    """Whether there is no number, or no whole one where that is asked for, within the bounds."""
    bounds = {name: part[name] for name in _LIMITS if not isinstance(part.get(name, True), bool)}
    low, above = bounds.get("minimum", -_FAR), bounds.get("exclusiveMinimum", -_FAR)
    high, below = bounds.get("maximum", _FAR), bounds.get("exclusiveMaximum", _FAR)
    if "integer" in kinds(part):
        least = max(math.ceil(low), math.floor(above) + 1)
        most = min(math.floor(high), math.ceil(below) - 1)
        return "there is no whole number in its bounds" if least > most else None
    empty = low > high or above >= below or above >= high or low >= below
    return "there is no number in its bounds" if empty else None


def _read(part: Any) -> Part:
    """What it reads of a schema."""
    if not isinstance(part, dict):
        return {}
    alone = next((name for name in _ALONE if name in part), None)
    if alone is not None:
        # All of several it does not know how to meet, and takes anything.
        several = alone == "allOf" and isinstance(part[alone], list) and len(part[alone]) > 1
        return {} if several else {alone: part[alone]}
    named = kinds(part) or _implied(part)
    read = {word: value for word, value in part.items() if not named.isdisjoint(_by(word))}
    return read | ({"type": part["type"]} if "type" in part else {})


def _implied(part: Part) -> set[str]:
    """The type of a schema that names none; nothing where it takes all."""
    return next(({kind} for kind, words in _IMPLY.items() if words & part.keys()), set())


def _by(word: str) -> frozenset[str]:
    return _READ_BY.get(word, frozenset())


def _children(part: Part) -> Iterator[Any]:
    for name in (*_BRANCHES, "prefixItems"):
        yield from part.get(name, ())
    for name in ("properties", "patternProperties"):
        yield from part.get(name, {}).values()
    for name in ("items", "additionalProperties", "propertyNames"):
        if not isinstance(part.get(name, True), bool):
            yield part[name]


def _part_fault(part: Part, root: Any) -> str | None:
    return next((wrong for check in _CHECKS if (wrong := check(part, root)) is not None), None)


def _shape_fault(part: Part, root: Any) -> str | None:
    wrong = shape_fault(part)
    if wrong is not None:
        return wrong
    if not isinstance(part.get("propertyNames", {}), dict):
        return "propertyNames must be an object"
    items = part.get("items", True)
    return "items must be a schema" if not isinstance(items, bool | dict) else None


def _reference_fault(part: Part, root: Any) -> str | None:
    pointer = part.get("$ref", "#")
    if not isinstance(pointer, str):
        return "$ref must be a text"
    if not pointer.startswith("#/"):
        return None
    return f"{pointer} points nowhere" if found(root, pointer) is None else None


def _text_fault(part: Part, root: Any) -> str | None:
    form, pattern = part.get("format", ""), part.get("pattern", "")
    if not isinstance(form, str) or not isinstance(pattern, str):
        return "format and pattern must be texts"
    read = (*(() if form else (pattern,)), *part.get("patternProperties", ()))
    return next((wrong for each in read if (wrong := _pattern_fault(each)) is not None), None)


def _pattern_fault(pattern: str) -> str | None:
    # It reads over what looks around.
    return None if "(?" in pattern or "\\" in pattern else patterns.fault(pattern)


def _count_fault(part: Part, root: Any) -> str | None:
    # The length of what has a form is not read.
    shaped = _RANGES[0] if "format" in part or "pattern" in part else ()
    for name in _COUNTS:
        value = part.get(name, 0)
        if not isinstance(value, int) or isinstance(value, bool):
            return f"{name} must be a whole number"
        if value < 0 and name in _NOT_NEGATIVE and name not in shaped:
            return f"{name} must not be negative"
    for low, high in _RANGES:
        if low in part and low not in shaped and part[low] > part.get(high, math.inf) >= 0:
            return f"{low} and {high} leave nothing"
    return _fewest_fault(part)


def _fewest_fault(part: Part) -> str | None:
    """Whether more is asked for than is told of: what is not told of may not be there."""
    told = [*part.get("prefixItems", ())]
    if part.get("items", False) is False and part.get("minItems", 0) > len(told):
        return "minItems asks for items of which nothing is said"
    if 0 <= part.get("maxItems", -1) < len(told):
        return "maxItems is less than prefixItems"
    if part.get("maxProperties", math.inf) < len(part.get("required", ())):
        return "more is required than may be there"
    told = [*part.get("properties", ()), *part.get("patternProperties", ())]
    more = part.get("additionalProperties", False) is not False or "propertyNames" in part
    if not more and not part.get("patternProperties") and part.get("minProperties", 0) > len(told):
        return "minProperties asks for properties of which nothing is said"
    return None


def _limit_fault(part: Part, root: Any) -> str | None:
    for name in (*_LIMITS, "multipleOf"):
        value = part.get(name, 1)
        if not isinstance(value, int | float) or isinstance(value, bool):
            return f"{name} must be a number"
    if part.get("multipleOf", 1) <= 0:
        return "multipleOf must be more than 0"
    given = [part[name] for name in _LIMITS if name in part]
    if "integer" in kinds(part) and not all(float(value).is_integer() for value in given):
        return "bounds of a whole number must be whole numbers"
    return range_fault(part)


_CHECKS: Sequence[Callable[[Part, Any], str | None]] = (
    type_fault,
    _shape_fault,
    _reference_fault,
    _text_fault,
    _count_fault,
    _limit_fault,
)
