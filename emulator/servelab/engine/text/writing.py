"""Texts that answers must be: JSON by a schema, one of several, a call of a function."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from servelab.engine.text import dialects, instances, patterns, scalars
from servelab.engine.text.template import Function

# A text from chance: another choice of the same request gets other chance.
Write = Callable[[random.Random], str]

CALL_START, CALL_END = "<tool_call>\n", "\n</tool_call>"

_ANY_OBJECT: Mapping[str, Any] = {
    "type": "object",
    "minProperties": 3,
    "additionalProperties": {"type": ["string", "integer", "boolean"]},
}


def by_schema(schema: Any) -> Write:
    """JSON that meets a schema; ``{}`` where none is found, which is not tried again."""
    hopeless = False

    def write(rng: random.Random) -> str:
        nonlocal hopeless
        made = None if hopeless else instances.found(schema, rng)
        hopeless = made is None
        return "{}" if made is None else _json(made[0])

    return write


def any_object() -> Write:
    """Some JSON object."""
    return by_schema(_ANY_OBJECT)


def one_of(texts: Sequence[str]) -> Write:
    """One of the texts."""
    return lambda rng: rng.choice(texts)


def by_pattern(pattern: str) -> Write:
    """A text that a regular expression matches; words where it is not understood."""
    read = patterns.Pattern(pattern)

    def write(rng: random.Random) -> str:
        text, _ = read.draw(rng)
        return scalars.words(rng) if text is None else text

    return write


def between(begin: str, inner: Write, end: str) -> Write:
    """A text between two marks."""
    return lambda rng: begin + inner(rng) + end


def in_turn(parts: Sequence[Write], separator: str = "") -> Write:
    """Texts one after the other."""
    return lambda rng: separator.join(part(rng) for part in parts)


def any_of(parts: Sequence[Write]) -> Write:
    """One of several texts."""
    return lambda rng: rng.choice(parts)(rng)


def free(rng: random.Random) -> str:
    """Some words."""
    return scalars.words(rng)


def call(functions: Sequence[Function], dialect: dialects.Dialect = dialects.HERMES) -> Write:
    """A call of one of the functions; the chat template writes those of earlier answers so too."""
    known = [
        (function.name, by_schema({"type": "object", **(function.parameters or {})}))
        for function in functions
    ]

    def write(rng: random.Random) -> str:
        name, arguments = rng.choice(known)
        return dialect(name, json.loads(arguments(rng)))

    return write


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
