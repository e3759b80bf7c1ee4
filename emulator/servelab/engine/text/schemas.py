"""JSON schemas made plain: references followed, alternatives chosen, parts laid together."""

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from servelab.engine.text.scalars import Unsatisfiable

Plain = dict[str, Any]

# References and parts within parts that are followed before a schema counts as endless, and
# parts in all, so many keywords, names and values counting as one.
MOST_NESTED = 32
MOST_PARTS = 50_000
PART_ENTRIES = 16

_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")


class Resolver:
    """Makes schemas of one document plain."""

    def __init__(self, root: Any, rng: random.Random) -> None:
        self._root = root
        self._rng = rng
        self._left = MOST_PARTS

    def plain(self, schema: Any, nested: int = 0, *, simplest: bool = False) -> Plain:
        """A schema without references, allOf, anyOf and oneOf. Raises Unsatisfiable.

        ``simplest``: of alternatives the one that nests least.
        """
        self._left -= 1
        if nested > MOST_NESTED or self._left < 0:
            raise Unsatisfiable("the schema refers to itself without an end")
        if schema is False:
            raise Unsatisfiable("nothing meets false")
        if not isinstance(schema, Mapping):
            return {}
        self._spend(schema)
        result = {name: value for name, value in schema.items() if name not in _PARTS}
        parts = list(_listed(schema.get("allOf")))
        if isinstance(schema.get("$ref"), str):
            parts.insert(0, self._referred(schema["$ref"]))
        for part in parts:
            result = merged(result, self.plain(part, nested + 1, simplest=simplest))
            self._spend(result)
        for name in ("anyOf", "oneOf"):
            if branches := _listed(schema.get(name)):
                result = self._with_branch(result, branches, nested, simplest=simplest)
        return result

    def _spend(self, schema: Mapping[str, Any]) -> None:
        """Counts what it takes to go through a schema once."""
        inner = sum(len(value) for value in schema.values() if isinstance(value, dict | list))
        self._left -= (len(schema) + inner) // PART_ENTRIES

    def _with_branch(
        self, base: Plain, branches: Sequence[Any], nested: int, *, simplest: bool
    ) -> Plain:
        """``base`` and one of the branches that go with it."""
        order = list(branches)
        self._rng.shuffle(order)
        if simplest:
            order.sort(key=_nests)
        for branch in order:
            try:
                return merged(base, self.plain(branch, nested + 1, simplest=simplest))
            except Unsatisfiable:
                continue
        raise Unsatisfiable("no alternative can be met")

    def _referred(self, reference: str) -> Any:
        """What a reference within the document points at."""
        if not reference.startswith("#"):
            return {}
        found = self._root
        for part in reference[1:].split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                raise Unsatisfiable(f"{reference} points at nothing")
        return found


_PARTS = frozenset({"$ref", "allOf", "anyOf", "oneOf"})


def _nests(branch: Any) -> bool:
    """Whether a branch leads further down."""
    names = ("$ref", "properties", "items", "anyOf", "oneOf", "allOf")
    return isinstance(branch, Mapping) and any(name in branch for name in names)


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def types(schema: Plain) -> list[str]:
    """The types a schema allows; none where it does not say."""
    kind = schema.get("type")
    found = [kind] if isinstance(kind, str) else list(_listed(kind))
    if schema.get("nullable") is True and found:  # OpenAPI
        found.append("null")
    return list(dict.fromkeys(each for each in found if isinstance(each, str)))


def merged(one: Plain, other: Plain) -> Plain:
    """A schema that asks for what both ask for. Raises Unsatisfiable where they exclude it."""
    result = one | other
    for name in one.keys() & other.keys():
        result[name] = _both(name, one[name], other[name])
    if "type" in one and "type" in other:
        result["type"] = _common(types(one), types(other))
    return result


def _both(name: str, one: Any, other: Any) -> Any:
    """The value of a keyword that stands in two schemas."""
    if name in _LOWER and _numbers(one, other):
        return max(one, other)
    if name in _UPPER and _numbers(one, other):
        return min(one, other)
    if name == "required":
        return list(
            dict.fromkeys(v for v in (*_listed(one), *_listed(other)) if isinstance(v, str))
        )
    if name == "enum":
        # By their text: a list of many values would be gone through for each of many.
        known = {json.dumps(value, sort_keys=True) for value in _listed(other)}
        kept = [value for value in _listed(one) if json.dumps(value, sort_keys=True) in known]
        if not kept:
            raise Unsatisfiable("the enumerations have nothing in common")
        return kept
    if name in ("properties", "patternProperties") and isinstance(one, Mapping):
        shared = {key: {"allOf": [one[key], other[key]]} for key in one if key in other}
        return dict(one) | dict(other) | shared
    if name in ("items", "additionalProperties", "contains", "propertyNames"):
        return {"allOf": [one, other]}
    if name == "const" and one != other:
        raise Unsatisfiable("the constants differ")
    return other


def _numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _common(one: list[str], other: list[str]) -> list[str]:
    """Types in both; a whole number is a number."""
    allowed = {*other, "integer"} if "number" in other else set(other)
    kept = [kind for kind in one if kind in allowed]
    kept += [kind for kind in other if kind == "integer" and "number" in one and kind not in kept]
    if not kept:
        raise Unsatisfiable("the types have nothing in common")
    return kept
