"""A value that meets a JSON schema, drawn by chance: what a guided model would answer.

Understood are types, enum, const, $ref, allOf, anyOf, oneOf, and the keywords of objects, arrays,
strings and numbers; not, if and dependentSchemas are passed over.
"""

import json
import random
from collections.abc import Mapping
from typing import Any

from servelab.engine.text import patterns, scalars, schemas
from servelab.engine.text.scalars import Unsatisfiable

# Values an instance may have, so many characters counting as one, and items where a schema leaves
# the number open.
MOST_VALUES = 4000
VALUE_CHARACTERS = 16
MOST_MORE_ITEMS = 3
# From this depth on only what is required is made.
DEEP = 6
DEEPEST = 64


def instance(schema: Any, rng: random.Random) -> Any:
    """A value that meets the schema; ``{}`` where none can be found."""
    made = found(schema, rng)
    return {} if made is None else made[0]


def found(schema: Any, rng: random.Random) -> tuple[Any] | None:
    """A value that meets the schema, if there is one."""
    try:
        return (_Maker(schema, rng).value(schema, 0),)
    except (Unsatisfiable, RecursionError, ArithmeticError):
        return None


class _Maker:
    def __init__(self, root: Any, rng: random.Random) -> None:
        self._resolver = schemas.Resolver(root, rng)
        self._rng = rng
        self._left = MOST_VALUES
        self._patterns: dict[str, patterns.Pattern] = {}

    def value(self, schema: Any, depth: int) -> Any:
        self._spend(1)
        if depth > DEEPEST:
            raise Unsatisfiable("the schema nests without an end")
        plain = self._resolver.plain(schema, simplest=not self._has_room(depth))
        if "const" in plain:
            return self._given(plain["const"])
        if isinstance(plain.get("enum"), list) and plain["enum"]:
            return self._given(self._rng.choice(_of_types(plain["enum"], schemas.types(plain))))
        kinds = schemas.types(plain) or [_implied(plain)]
        self._rng.shuffle(kinds)
        if not self._has_room(depth):
            kinds.sort(key=lambda kind: kind in ("object", "array"))
        for kind in kinds:
            try:
                return self._of_type(kind, plain, depth)
            except Unsatisfiable:
                if kind == kinds[-1]:
                    raise
        return None

    def _spend(self, values: int) -> None:
        self._left -= values
        if self._left < -MOST_VALUES:
            raise Unsatisfiable("the schema asks for too much")

    def _draw(self, characters: int) -> None:
        self._spend(characters // VALUE_CHARACTERS)

    def _given(self, value: Any) -> Any:
        """A value that stands in the schema: it may be long, and be asked for many times."""
        self._draw(len(json.dumps(value)))
        return value

    def _read(self, pattern: str) -> patterns.Pattern:
        if pattern not in self._patterns:
            self._draw(len(pattern))
            self._patterns[pattern] = patterns.Pattern(pattern)
        return self._patterns[pattern]

    def _of_type(self, kind: str, plain: schemas.Plain, depth: int) -> Any:
        if kind == "object":
            return self._object(plain, depth)
        if kind == "array":
            return self._array(plain, depth)
        if kind in ("integer", "number"):
            return scalars.number(plain, self._rng, whole=kind == "integer")
        if kind == "boolean":
            return self._rng.random() < 0.5
        if kind == "null":
            return None
        return scalars.text(plain, self._rng, self._draw, self._read)

    def _object(self, plain: schemas.Plain, depth: int) -> dict[str, Any]:
        declared = plain.get("properties")
        declared = dict(declared) if isinstance(declared, Mapping) else {}
        required = dict.fromkeys(_names(plain.get("required")))
        most = scalars.bound(plain, "maxProperties")
        made: dict[str, Any] = {}
        missing = len(required)
        for name in declared | required:
            if name in required:
                made[name] = self._property(name, plain, depth)
                missing -= 1
            elif self._has_room(depth) and (most is None or len(made) + missing < most):
                try:
                    made[name] = self._property(name, plain, depth)
                except Unsatisfiable:
                    continue
        for name, others in _items(plain.get("dependentRequired")):
            for other in _names(others) if name in made else ():
                if other not in made:
                    made[other] = self._property(other, plain, depth)
        self._fill(made, plain, depth)
        return made

    def _property(self, name: str, plain: schemas.Plain, depth: int) -> Any:
        self._draw(len(name))
        declared = plain.get("properties")
        if isinstance(declared, Mapping) and name in declared:
            return self.value(declared[name], depth + 1)
        return self.value(plain.get("additionalProperties", True), depth + 1)

    def _fill(self, made: dict[str, Any], plain: schemas.Plain, depth: int) -> None:
        """Further properties, up to the fewest there must be."""
        fewest = min(scalars.bound(plain, "minProperties") or 0, MOST_VALUES)
        tries = 0
        while len(made) < fewest:
            tries += 1
            if tries > 2 * fewest + scalars.TRIES:
                raise Unsatisfiable("not enough names for minProperties")
            name, schema = self._further(plain)
            if name not in made:
                made[name] = self.value(schema, depth + 1)

    def _further(self, plain: schemas.Plain) -> tuple[str, Any]:
        """A name that is not declared, and the schema of its value."""
        named = _items(plain.get("patternProperties"))
        if named and (plain.get("additionalProperties") is False or "propertyNames" not in plain):
            pattern, schema = self._rng.choice(named)
            drawn, steps = self._read(pattern).draw(self._rng)
            self._draw(steps)
            self._spend(1)
            if drawn is not None:
                return drawn, schema
        names = plain.get("propertyNames")
        limits = dict(names) if isinstance(names, Mapping) else {}
        name = str(self.value({"type": "string"} | limits, DEEP))
        return name, plain.get("additionalProperties", True)

    def _array(self, plain: schemas.Plain, depth: int) -> list[Any]:
        heads = plain.get("prefixItems")
        rest = plain.get("items", True)
        if isinstance(rest, list):  # drafts before 2020
            heads, rest = rest, plain.get("additionalItems", True)
        heads = heads if isinstance(heads, list) else []
        fewest = min(scalars.bound(plain, "minItems") or 0, MOST_VALUES)
        most = scalars.bound(plain, "maxItems")
        wanted = scalars.bound(plain, "minContains") if "contains" in plain else 0
        wanted = 1 if wanted is None else min(wanted, MOST_VALUES)
        count = self._length(plain, max(fewest, wanted), most, len(heads), depth)
        unique = plain.get("uniqueItems") is True
        made: list[Any] = []
        taken: set[str] | None = set() if unique else None
        for place in range(count):
            schema = heads[place] if place < len(heads) else rest
            if place < wanted:
                schema = {"allOf": [schema, plain["contains"]]}
            try:
                made.append(self._item(schema, taken, depth))
            except Unsatisfiable:
                if place < max(fewest, wanted):
                    raise
                break
        return made

    def _length(
        self, plain: schemas.Plain, fewest: int, most: int | None, heads: int, depth: int
    ) -> int:
        if most is not None and most < fewest:
            raise Unsatisfiable("maxItems is under minItems")
        if not self._has_room(depth):
            return fewest
        ends = plain.get("items") is False or plain.get("additionalItems") is False
        more = max(fewest, heads if ends else max(1, heads) + self._rng.randrange(MOST_MORE_ITEMS))
        if "maxContains" in plain:
            more = fewest
        return more if most is None else min(more, most)

    def _item(self, schema: Any, taken: set[str] | None, depth: int) -> Any:
        """An item, unlike those taken."""
        for _ in range(scalars.TRIES):
            made = self.value(schema, depth + 1)
            if taken is None:
                return made
            if (written := json.dumps(made, sort_keys=True)) not in taken:
                taken.add(written)
                return made
        raise Unsatisfiable("the items cannot all differ")

    def _has_room(self, depth: int) -> bool:
        return depth < DEEP and self._left > 0


def _of_types(values: list[Any], kinds: list[str]) -> list[Any]:
    """Those of the types; all where none is."""
    kept = [value for value in values if any(_is(value, kind) for kind in kinds)]
    return kept or values


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    pythons: Mapping[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "null": type(None),
    }
    return isinstance(value, pythons.get(kind, ()))


def _implied(plain: schemas.Plain) -> str:
    """The type whose keywords a schema without a type has."""
    marks = {
        "object": ("properties", "required", "additionalProperties", "minProperties"),
        "array": ("items", "prefixItems", "minItems", "contains"),
        "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    }
    for kind, names in marks.items():
        if any(name in plain for name in names):
            return kind
    return "string"


def _names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, Mapping) else []
