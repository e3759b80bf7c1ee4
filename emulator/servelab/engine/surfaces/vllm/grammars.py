"""Which patterns, schemas and structural tags vLLM 0.33 takes.

It asks xgrammar, and llguidance for what xgrammar cannot do; what both refuse is bad.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from servelab.engine.surfaces.vllm.refusals import Refusal

_TYPES = frozenset({"string", "number", "integer", "boolean", "null", "object", "array"})
_FORMATS = frozenset(
    {
        *("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"),
        *("uri", "uri-reference", "uri-template", "json-pointer", "relative-json-pointer"),
    }
)
_UNKNOWN_WORDS = ("uniqueItems", "contains")  # of JSON schema, to llguidance
_LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS_OF_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions")
_SCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "propertyNames")
_BOUNDS = (
    *(("minLength", "maxLength"), ("minItems", "maxItems"), ("minProperties", "maxProperties")),
    *(("minimum", "maximum"), ("exclusiveMinimum", "exclusiveMaximum")),
)

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
    """What is wrong with a JSON schema; None if nothing is."""
    level: list[Any] = [schema]
    while level:
        for each in level:
            if not isinstance(each, dict | bool):
                return "a schema must be an object or a boolean"
        parts = [each for each in level if isinstance(each, dict)]
        for part in parts:
            fault = _part_fault(part, schema)
            if fault is not None:
                return fault
        level = [child for part in parts for child in _children(part)]
    return None


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
    for names, kind in ((_LISTS_OF_SCHEMAS, list), (("enum", "required"), list)):
        for name in names:
            if not isinstance(part.get(name, []), kind):
                return f"{name} must be a list"
    if part.get("enum") == []:
        return "enum must not be empty"
    wrong = [name for name in _MAPS_OF_SCHEMAS if not isinstance(part.get(name, {}), dict)]
    return f"{wrong[0]} must be an object" if wrong else None


def _word_fault(part: Mapping[str, Any], root: Any) -> str | None:
    unknown = [name for name in _UNKNOWN_WORDS if part.get(name)]
    if unknown:
        return f"{unknown[0]} is not supported"
    form = part.get("format")
    if isinstance(form, str) and form not in _FORMATS:
        return f"there is no format {form!r}"
    pattern = part.get("pattern")
    # xgrammar reads over what looks around; what neither can read ends here.
    if isinstance(pattern, str) and "(?" not in pattern and "\\" not in pattern:
        return pattern_fault(pattern)
    return None


def _required_fault(part: Mapping[str, Any], root: Any) -> str | None:
    properties = part.get("properties", {})
    never = {name for name, inner in properties.items() if inner is False}
    barred = [name for name in part.get("required", ()) if isinstance(name, str) and name in never]
    return f"{barred[0]} is required and must not be there" if barred else None


def _bound_fault(part: Mapping[str, Any], root: Any) -> str | None:
    for names in _BOUNDS:
        low, high = (part.get(name) for name in names)
        for name, value in zip(names, (low, high), strict=True):
            if value is not None and not isinstance(value, int | float):
                return f"{name} must be a number"
            if name.endswith(("Length", "Items", "Properties")) and (value or 0) < 0:
                return f"{name} must not be negative"
        if low is None or high is None:
            continue
        if low > high or (low == high and names[0] == "exclusiveMinimum"):
            return f"{names[0]} and {names[1]} leave nothing"
    return "multipleOf must not be 0" if part.get("multipleOf") == 0 else None


def _reference_fault(part: Mapping[str, Any], root: Any) -> str | None:
    pointer = part.get("$ref")
    if not isinstance(pointer, str) or not pointer.startswith("#/"):
        return None
    found = root
    for step in pointer[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or name not in found:
            return f"{pointer} points nowhere"
        found = found[name]
    return None


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


def tag_fault(tag: Any) -> str | None:
    """What is wrong with a structural tag; None if nothing is."""
    if not isinstance(tag, Mapping):
        return "a structural tag must be an object"
    if "structures" not in tag:
        return _format_fault(tag.get("format"))
    structures, triggers = tag["structures"], tag.get("triggers", [])
    if not _are(structures, Mapping) or not _are(triggers, str):
        return "structures and triggers must be lists, and not empty"
    for each in structures:
        begin = each.get("begin")
        if not isinstance(begin, str) or not isinstance(each.get("end"), str):
            return "a structure needs begin and end"
        if sum(begin.startswith(trigger) for trigger in triggers) != 1:
            return f"{begin!r} must begin with one of the triggers"
    return None


def check_tag(tag: Any, param: str) -> None:
    """A structural tag as it came, or as text. Raises Refusal."""
    if isinstance(tag, str):
        try:
            tag = json.loads(tag)
        except (ValueError, RecursionError):
            tag = None
    fault = tag_fault(tag)
    if fault is not None:
        message = f"The structural tag in {param} cannot be used: {fault}."
        raise Refusal(message, param=param)


def _are(values: object, kind: type) -> bool:
    return isinstance(values, list) and bool(values) and all(isinstance(v, kind) for v in values)


# Fields that a format needs.
_FORMAT_FIELDS: Mapping[str, Sequence[str]] = {
    "const_string": ("value",),
    "json_schema": ("json_schema",),
    "any_text": (),
    "grammar": ("grammar",),
    "regex": ("pattern",),
    "sequence": ("elements",),
    "or": ("elements",),
    "tag": ("begin", "content", "end"),
    "triggered_tags": ("triggers", "tags"),
    "tags_with_separator": ("tags", "separator"),
    "optional": ("content",),
    "plus": ("content",),
    "star": ("content",),
    "qwen_xml_parameter": ("json_schema",),
}


def _format_fault(form: Any) -> str | None:
    if not isinstance(form, Mapping):
        return "format must be an object"
    kind = form.get("type")
    fields = _FORMAT_FIELDS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        return f"there is no format of type {kind!r}"
    missing = [name for name in fields if name not in form]
    if missing:
        return f"a format of type {kind} needs {missing[0]}"
    if kind == "regex":
        return pattern_fault(str(form["pattern"]))
    if kind == "json_schema":
        return schema_fault(form["json_schema"])
    inner = [form["content"]] if "content" in form else form.get("elements", ())
    found = (_format_fault(each) for each in inner)
    return next((fault for fault in found if fault is not None), None)


_CHECKS: Sequence[Callable[[Mapping[str, Any], Any], str | None]] = (
    _type_fault,
    _shape_fault,
    _word_fault,
    _required_fault,
    _bound_fault,
    _reference_fault,
)
