"""Strings and numbers that meet a JSON schema."""

import math
import random
import uuid
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from servelab.engine.text import patterns, vocabulary

Schema = Mapping[str, Any]

# Where a schema gives no bounds: values and lengths as people write them, and how far a long
# string is made; tries to meet a length with a pattern.
DEFAULT_SPAN = 100
MOST_WORDS = 3
MOST_CHARACTERS = 65_536
TRIES = 50
LARGEST = 10**300


class Unsatisfiable(Exception):
    """No value meets the schema, as far as it is understood."""


Spend = Callable[[int], None]
Read = Callable[[str], patterns.Pattern]


def text(schema: Schema, rng: random.Random, spend: Spend, read: Read = patterns.Pattern) -> str:
    """A string. Raises Unsatisfiable. ``spend`` is told how many characters were drawn for it."""
    shortest = min(bound(schema, "minLength") or 0, MOST_CHARACTERS)
    longest = bound(schema, "maxLength")
    if longest is not None and longest < shortest:
        raise Unsatisfiable("maxLength is under minLength")
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        return _matching(read(pattern), (shortest, longest), rng, spend)
    drawn = _FORMATS.get(str(schema.get("format")), words)(rng)
    if "format" in schema and _fits(drawn, shortest, longest):
        return drawn
    result = words(rng)
    while len(result) < shortest:
        result += " " + words(rng)
    spend(len(result))
    return result if longest is None else result[:longest].rstrip().ljust(shortest, "a")


def _fits(drawn: str, shortest: int, longest: int | None) -> bool:
    return shortest <= len(drawn) and (longest is None or len(drawn) <= longest)


def _matching(
    pattern: patterns.Pattern, lengths: tuple[int, int | None], rng: random.Random, spend: Spend
) -> str:
    last: str | None = None
    steps = 0
    for _ in range(TRIES):
        last, taken = pattern.draw(rng)
        steps += 1 + taken
        if last is None or _fits(last, *lengths):
            break
    spend(steps)
    # A pattern that is not understood is not met.
    return words(rng) if last is None else last


def words(rng: random.Random) -> str:
    """One to three words."""
    return " ".join(rng.choices(vocabulary.words(), k=rng.randint(1, MOST_WORDS)))


def number(schema: Schema, rng: random.Random, *, whole: bool) -> int | float:
    """A number, or a whole one. Raises Unsatisfiable."""
    low, high = _bounds(schema)
    step = schema.get("multipleOf")
    if isinstance(step, int | float) and not isinstance(step, bool) and 0 < step < math.inf:
        return _multiple(step, low, high, rng, whole=whole)
    if whole:
        return _integer(low, high, rng)
    if low == high:
        return _plain(low)
    middle = low + (high - low) * Fraction(rng.randint(1, 999), 1000)
    # Two digits after the point where there is room for them.
    short = Fraction(round(middle * 100), 100)
    return float(short if low < short < high else middle)


def _integer(low: Fraction, high: Fraction, rng: random.Random) -> int:
    first, last = math.ceil(low), math.floor(high)
    if first > last:
        raise Unsatisfiable("no whole number lies within the bounds")
    return rng.randint(first, last)


def _multiple(
    step: float, low: Fraction, high: Fraction, rng: random.Random, *, whole: bool
) -> int | float:
    each = Fraction(str(step))
    if whole:
        each = Fraction(each.numerator)  # the least that is a multiple of both
    factor = _integer(low / each, high / each, rng)
    return _plain(each * factor)


def _plain(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else float(value)


def _bounds(schema: Schema) -> tuple[Fraction, Fraction]:
    """The lowest and the highest number; exclusive bounds are moved in by a little."""
    low, high = _limit(schema, "minimum"), _limit(schema, "maximum")
    above, below = _limit(schema, "exclusiveMinimum"), _limit(schema, "exclusiveMaximum")
    # In draft 4 the exclusive ones are switches.
    if schema.get("exclusiveMinimum") is True:
        above = low
    if schema.get("exclusiveMaximum") is True:
        below = high
    if above is not None and (low is None or above >= low):
        low = above + _little(above, below if below is not None else high)
    if below is not None and (high is None or below <= high):
        high = below - _little(low, below)
    if low is None:
        low = Fraction(0) if high is None or high >= 0 else high - DEFAULT_SPAN
    if high is None:
        high = low + DEFAULT_SPAN
    if high < low:
        raise Unsatisfiable("the upper bound is under the lower one")
    return low, high


def _little(low: Fraction | None, high: Fraction | None) -> Fraction:
    """A step into an interval that a whole number does not cross."""
    span = high - low if low is not None and high is not None else Fraction(1)
    return min(Fraction(1, 100), abs(span) / 100)


def _limit(schema: Schema, name: str) -> Fraction | None:
    value = schema.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    if abs(value) > LARGEST:
        raise Unsatisfiable("the bounds are larger than numbers are written")
    return Fraction(value)


def bound(schema: Schema, name: str) -> int | None:
    """A keyword that counts something; None where it is left out or makes no sense."""
    value = schema.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        return None
    return int(value)


def _digits(rng: random.Random, low: int, high: int) -> str:
    return f"{rng.randint(low, high):02}"


def _date(rng: random.Random) -> str:
    return f"{rng.randint(2000, 2030)}-{_digits(rng, 1, 12)}-{_digits(rng, 1, 28)}"


def _time(rng: random.Random) -> str:
    return f"{_digits(rng, 0, 23)}:{_digits(rng, 0, 59)}:{_digits(rng, 0, 59)}Z"


def _word(rng: random.Random) -> str:
    return rng.choice(vocabulary.words())


_FORMATS: Mapping[str, Callable[[random.Random], str]] = {
    "date": _date,
    "time": _time,
    "date-time": lambda rng: f"{_date(rng)}T{_time(rng)}",
    "duration": lambda rng: f"P{rng.randint(1, 30)}D",
    "email": lambda rng: f"{_word(rng)}@example.com",
    "hostname": lambda rng: f"{_word(rng)}.example.com",
    "uri": lambda rng: f"https://example.com/{_word(rng)}",
    "uri-reference": lambda rng: f"/{_word(rng)}",
    "ipv4": lambda rng: ".".join(str(rng.randint(1, 254)) for _ in range(4)),
    "ipv6": lambda rng: "2001:db8::" + f"{rng.randint(1, 0xFFFF):x}",
    "uuid": lambda rng: str(uuid.UUID(int=rng.getrandbits(128), version=4)),
    "json-pointer": lambda rng: f"/{_word(rng)}",
    "regex": lambda rng: f"^{_word(rng)}$",
}
