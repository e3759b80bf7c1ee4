"""What a client wishes the answer's text to be: JSON, a schema, a pattern, one of several."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from servelab.engine.surfaces.vllm import backends, bodies, patterns, rules, xgrammar
from servelab.engine.surfaces.vllm.refusals import Refusal
from servelab.engine.text import productions, writing

# As deep as vLLM lets a schema nest.
MOST_NESTED = 64


Wish = tuple[str, Any]  # its kind, and what it is


class Constraint(NamedTuple):
    """How an answer is held to a wish: what writes it, whose grammar it is, whether that begins."""

    write: writing.Write
    backend: str = backends.XGRAMMAR
    begins: bool = True


def constraint(wish: Wish) -> Constraint:
    """What a wish comes to. Raises Refusal."""
    kind, value = wish
    found = _WRITERS[kind](value)
    return found if isinstance(found, Constraint) else Constraint(found)


def wish(request: bodies.Sampling) -> Wish | None:
    """What is wished: ``response_format`` laid over ``structured_outputs``. Raises Refusal."""
    told = request.structured_outputs
    wishes: dict[str, Any] = {} if told is None else told.model_dump(by_alias=True)
    form = request.response_format
    if isinstance(form, bodies.ResponseFormat):
        if form.type == "json_object":
            wishes["json_object"] = True
        elif form.type == "json_schema":
            wishes["json"] = form.json_schema and form.json_schema.json_schema
            if wishes["json"] is None:
                raise Refusal("response_format of type json_schema needs a schema.")
    elif form is not None:
        wishes["structural_tag"] = form.model_dump(by_alias=True)
    given = [
        (kind, value) for kind, value in wishes.items() if value is not None and kind in _WRITERS
    ]
    if told is not None:
        rules.single_wish([kind for kind, _ in given])
    return given[0] if given else None


def _by_json(schema: Any) -> Constraint:
    if isinstance(schema, str):
        schema = _loaded(schema, "structured_outputs.json")
    if _nesting(schema) > MOST_NESTED:
        raise Refusal(f"The JSON schema nests deeper than {MOST_NESTED} levels.")
    backend = backends.of_schema(schema)
    begins = backend != backends.XGRAMMAR or xgrammar.begins(schema)
    return Constraint(writing.by_schema(schema), backend, begins)


def _by_regex(pattern: str) -> writing.Write:
    if "\0" in pattern:
        raise Refusal("structured_outputs.regex must not hold a NUL character.")
    _must_be_sound("The pattern", patterns.fault(pattern))
    return writing.by_pattern(pattern)


def _by_choice(choices: Sequence[str]) -> writing.Write:
    if not choices:
        raise Refusal("structured_outputs.choice must not be empty.")
    return writing.one_of(choices)


def _by_grammar(text: str) -> writing.Write:
    try:
        return productions.Grammar(text).write
    except (ValueError, RecursionError) as error:
        raise Refusal(f"structured_outputs.grammar cannot be used: {error}.") from None


def _by_object(wanted: bool) -> writing.Write:
    if not wanted:
        raise Refusal("structured_outputs.json_object must be true: leave it out.")
    return writing.any_object()


def _by_tag(tag: Any) -> writing.Write:
    """A structural tag: of legacy ones the first structure, without what may stand before it."""
    if isinstance(tag, str):
        tag = _loaded(tag, "structured_outputs.structural_tag")
    if isinstance(tag, Mapping) and isinstance(tag.get("structures"), list):
        first = next((each for each in tag["structures"] if isinstance(each, Mapping)), {})
        inner = writing.by_schema(first.get("schema") or {})
        return writing.between(str(first.get("begin", "")), inner, str(first.get("end", "")))
    return _by_format(tag.get("format") if isinstance(tag, Mapping) else None)


def _by_format(form: Any) -> writing.Write:
    """One format of xgrammar's structural tags; words for those that are not understood."""
    if not isinstance(form, Mapping):
        return writing.free
    kind, elements = form.get("type"), _listed(form.get("elements"))
    if kind == "const_string":
        return writing.one_of([str(form.get("value", ""))])
    if kind == "json_schema":
        return writing.by_schema(form.get("json_schema"))
    if kind == "regex":
        return writing.by_pattern(str(form.get("pattern", "")))
    if kind == "sequence":
        return writing.in_turn([_by_format(each) for each in elements])
    if kind == "or" and elements:
        return writing.any_of([_by_format(each) for each in elements])
    if kind == "tag":
        inner = _by_format(form.get("content"))
        return writing.between(str(form.get("begin", "")), inner, _first(form.get("end")))
    tags = _listed(form.get("tags"))
    if kind in ("triggered_tags", "tags_with_separator") and tags:
        return writing.any_of([_by_format({"type": "tag", **_mapping(each)}) for each in tags])
    return writing.free


def _must_be_sound(what: str, fault: str | None) -> None:
    if fault is not None:
        raise Refusal(f"{what} cannot be used: {fault}.")


def _loaded(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Refusal(f"{name} must be JSON.") from None


def _nesting(document: Any) -> int:
    """How deep objects and arrays nest."""
    deepest, level = 0, [document]
    while level := [each for each in level if isinstance(each, dict | list)]:
        deepest += 1
        if deepest > MOST_NESTED:
            break
        level = [
            child for each in level for child in (each.values() if isinstance(each, dict) else each)
        ]
    return deepest


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _first(value: Any) -> str:
    """A text, or the first of several."""
    if isinstance(value, list):
        value = value[0] if value else ""
    return str(value or "")


_WRITERS: Mapping[str, Callable[[Any], writing.Write | Constraint]] = {
    "json": _by_json,
    "regex": _by_regex,
    "choice": _by_choice,
    "grammar": _by_grammar,
    "json_object": _by_object,
    "structural_tag": _by_tag,
}
