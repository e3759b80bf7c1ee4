"""A text that a regular expression matches.

The syntax is what ECMAScript and Python have in common, without look-around and back references.
Anchors and word boundaries take no part: the text is the whole match.
"""

import random
import string
from collections.abc import Callable, Iterable

# What a pattern without an upper bound repeats beyond its lower one, how long a text may get, and
# how long a pattern that is read: 20 ms.
MOST_MORE = 4
MOST_CHARACTERS = 8192
LONGEST_PATTERN = 8192

_PRINTABLE = frozenset(map(chr, range(0x20, 0x7F)))
_DIGITS = frozenset(string.digits)
_WORD = frozenset(string.ascii_letters + string.digits + "_")
_SPACE = frozenset(" ")
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}


class Unsupported(Exception):
    """The pattern has a part that cannot be drawn from."""


class _Chance:
    """Where the drawn characters come from, and how many more there may be."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.left = MOST_CHARACTERS

    def joined(self, parts: Iterable[str]) -> str:
        result = []
        for part in parts:
            self.left -= 1 + len(part)
            if self.left < 0:
                raise Unsupported("a text that is too long")
            result.append(part)
        return "".join(result)


Draw = Callable[[_Chance], str]


class Pattern:
    """A pattern that has been read, to draw from many times."""

    def __init__(self, pattern: str) -> None:
        self._node: Draw | None = None
        if len(pattern) > LONGEST_PATTERN:
            return
        try:
            reader = _Reader(pattern)
            node = reader.alternatives()
            if reader.peek():
                raise Unsupported("an unpaired bracket")
        except (Unsupported, RecursionError):
            return
        self._node = node

    def draw(self, rng: random.Random) -> tuple[str | None, int]:
        """A text, None where the pattern is not understood; and how many steps that took."""
        if self._node is None:
            return None, 0
        chance = _Chance(rng)
        try:
            text = self._node(chance)
        except (Unsupported, RecursionError):
            return None, MOST_CHARACTERS
        return text, MOST_CHARACTERS - chance.left


def draw(pattern: str, rng: random.Random) -> str | None:
    """A text that the whole pattern matches; None where the pattern is not understood."""
    return Pattern(pattern).draw(rng)[0]


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._place = 0

    def peek(self, count: int = 1) -> str:
        return self._pattern[self._place : self._place + count]

    def take(self, count: int = 1) -> str:
        taken = self.peek(count)
        if len(taken) < count:
            raise Unsupported("an early end")
        self._place += count
        return taken

    def took(self, text: str) -> bool:
        if self.peek(len(text)) != text:
            return False
        self._place += len(text)
        return True

    def until(self, end: str) -> str:
        place = self._pattern.find(end, self._place)
        if place < 0:
            raise Unsupported(f"no {end}")
        return self.take(place + len(end) - self._place)[: -len(end)]

    def alternatives(self) -> Draw:
        branches = [self._sequence()]
        while self.took("|"):
            branches.append(self._sequence())
        return lambda chance: chance.rng.choice(branches)(chance)

    def _sequence(self) -> Draw:
        parts: list[Draw] = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self._repeated(self._atom()))
        return lambda chance: chance.joined(part(chance) for part in parts)

    def _repeated(self, atom: Draw) -> Draw:
        low, high = self._bounds()
        self.took("?")  # lazy
        if (low, high) == (1, 1):
            return atom
        most = low + MOST_MORE if high is None else min(high, low + MOST_MORE)
        return lambda chance: chance.joined(
            atom(chance) for _ in range(chance.rng.randint(low, most))
        )

    def _bounds(self) -> tuple[int, int | None]:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.took(sign):
                return bounds
        if self.peek() != "{" or not self.peek(2)[1:].isdigit():
            return 1, 1
        self.take()
        low, comma, high = self.until("}").partition(",")
        try:
            least = int(low)
            most = None if comma and not high else int(high or low)
        except ValueError:
            raise Unsupported("bounds that are no numbers") from None
        if least > MOST_CHARACTERS or (most is not None and most < least):
            raise Unsupported("bounds that cannot be met")
        return least, most

    def _atom(self) -> Draw:
        character = self.take()
        if character == "(":
            return self._group()
        if character in "^$":
            return lambda _: ""
        if character == ".":
            return _one_of(_PRINTABLE)
        if character == "[":
            return _one_of(self._set())
        if character == "\\":
            if self.peek() in ("b", "B", "A", "Z"):
                self.take()
                return lambda _: ""
            return _one_of(self._escaped())
        return lambda _: character

    def _group(self) -> Draw:
        if self.took("?"):
            if self.took("<") or self.took("P<"):
                if self.peek() in ("=", "!"):
                    raise Unsupported("look-behind")
                self.until(">")
            elif not self.took(":"):
                raise Unsupported("look-ahead, or a flag")
        inner = self.alternatives()
        if not self.took(")"):
            raise Unsupported("a group without an end")
        return inner

    def _set(self) -> frozenset[str]:
        inverted = self.took("^")
        found: set[str] = set()
        first = True
        while first or self.peek() != "]":
            first = False
            low = self._member()
            if self.peek() != "-" or self.peek(2)[1:] in ("]", ""):
                found |= low
                continue
            self.take()
            found |= _range(low, self._member())
        self.take()
        return _PRINTABLE - found if inverted else frozenset(found)

    def _member(self) -> frozenset[str]:
        return self._escaped() if self.took("\\") else frozenset(self.take())

    def _escaped(self) -> frozenset[str]:
        letter = self.take()
        if letter.lower() in _CLASSES:
            known = _CLASSES[letter.lower()]
            return known if letter.islower() else _PRINTABLE - known
        if letter in _CONTROLS:
            return frozenset(_CONTROLS[letter])
        if letter in "xu":
            return frozenset(self._coded(2 if letter == "x" else 4))
        if letter.isalnum():
            raise Unsupported(f"the escape {letter}")
        return frozenset(letter)

    def _coded(self, digits: int) -> str:
        try:
            return chr(int(self.take(digits), 16))
        except ValueError:
            raise Unsupported("a code that is no number") from None


def _range(low: frozenset[str], high: frozenset[str]) -> set[str]:
    if len(low) != 1 or len(high) != 1:
        raise Unsupported("a range of classes")
    first, last = ord(next(iter(low))), ord(next(iter(high)))
    # The first of a large range stand for all of it.
    return {chr(code) for code in range(first, min(last, first + 255) + 1)}


def _one_of(characters: frozenset[str]) -> Draw:
    if not characters:
        raise Unsupported("an empty set")
    ordered = sorted(characters)
    return lambda chance: chance.rng.choice(ordered)
