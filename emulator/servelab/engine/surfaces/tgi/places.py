"""Where things stand in a JSON text, and what serde_json says of one that is none.

Only a body that is refused is read here: line and column are those that serde_json would give.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

# Deeper nesting is refused.
DEPTH_LIMIT = 128

_BLANKS = re.compile(rb"[ \t\n\r]*")
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_STRING = re.compile(rb'"(?:[^"\\\x00-\x1f]|\\.)*"', re.DOTALL)
_IDENTS = (b"true", b"false", b"null")

Key = str | int


class Malformed(Exception):
    """The text is no JSON; ``at`` is how many bytes were read."""

    def __init__(self, message: str, at: int) -> None:
        self.at = at
        super().__init__(message)


@dataclass(slots=True)
class Span:
    """A value's first byte, the byte after it, and the values in it."""

    start: int
    end: int = 0
    parts: dict[Key, "Span"] = field(default_factory=dict)

    def at(self, path: Sequence[Key]) -> "Span":
        """The value at a path."""
        found = self
        for key in path:
            found = found.parts[key]
        return found


def line_and_column(text: bytes, at: int) -> str:
    """Where so many bytes were read, in serde_json's words."""
    before = text[:at]
    line_start = before.rfind(b"\n") + 1
    lines = before.count(b"\n") + 1
    return f"line {lines} column {at - line_start}"


def spans(text: bytes) -> Span:
    """The places of all values; what follows the first value is not looked at. Raises Malformed."""
    return _Reader(text).value(0, DEPTH_LIMIT)


class _Reader:
    def __init__(self, text: bytes) -> None:
        self._text = text

    def value(self, at: int, depth: int) -> Span:
        at = self._skip(at)
        first = self._text[at : at + 1]
        if first in (b"{", b"["):
            if depth == 1:
                raise Malformed("recursion limit exceeded", at + 1)
            return (self._map if first == b"{" else self._list)(at, depth - 1)
        if first == b'"':
            return Span(at, self._string(at))
        if not first:
            raise Malformed("EOF while parsing a value", at)
        for ident in _IDENTS:
            if first == ident[:1]:
                return Span(at, self._ident(at, ident))
        number = _NUMBER.match(self._text, at)
        if number is None:
            digit = first == b"-"
            raise Malformed("invalid number" if digit else "expected value", at + 1)
        return Span(at, number.end())

    def _map(self, at: int, depth: int) -> Span:
        found = Span(at)
        at = self._skip(at + 1)
        while self._peek(at, "an object") != b"}":
            if found.parts:
                if self._text[at : at + 1] != b",":
                    raise Malformed("expected `,` or `}`", at + 1)
                at = self._skip(at + 1)
            if self._peek(at, "an object") != b'"':
                closed = self._text[at : at + 1] == b"}"
                raise Malformed("trailing comma" if closed else "key must be a string", at + 1)
            end = self._string(at)
            key = self._text[at + 1 : end - 1].decode(errors="replace")
            at = self._skip(end)
            if self._peek(at, "an object") != b":":
                raise Malformed("expected `:`", at + 1)
            value = found.parts[key] = self.value(at + 1, depth)
            at = self._skip(value.end)
        found.end = at + 1
        return found

    def _list(self, at: int, depth: int) -> Span:
        found = Span(at)
        at = self._skip(at + 1)
        while self._peek(at, "a list") != b"]":
            if found.parts:
                if self._text[at : at + 1] != b",":
                    raise Malformed("expected `,` or `]`", at + 1)
                at = self._skip(at + 1)
                if self._peek(at, "a list") == b"]":
                    raise Malformed("trailing comma", at + 1)
            value = found.parts[len(found.parts)] = self.value(at, depth)
            at = self._skip(value.end)
        found.end = at + 1
        return found

    def _string(self, at: int) -> int:
        match = _STRING.match(self._text, at)
        if match is None:
            return self._broken_string(at)
        self._check_escapes(match[0], at)
        return match.end()

    def _broken_string(self, at: int) -> int:
        control = re.compile(rb"[\x00-\x1f]").search(self._text, at)
        if control is None:
            raise Malformed("EOF while parsing a string", len(self._text))
        what = "control character (\\u0000-\\u001F) found while parsing a string"
        raise Malformed(what, control.end())

    def _check_escapes(self, quoted: bytes, at: int) -> None:
        high = -1
        for match in re.finditer(rb"\\(u(?P<code>[0-9a-fA-F]{4})?|.)", quoted, re.DOTALL):
            code = int(match["code"], 16) if match["code"] else 0
            if match[1][:1] not in b'"\\/bfnrtu' or (match[1] == b"u" and not match["code"]):
                raise Malformed("invalid escape", at + match.end())
            if 0xDC00 <= code <= 0xDFFF and high != match.start():
                raise Malformed("lone leading surrogate in hex escape", at + match.end())
            if high >= 0 and high != match.start():
                raise Malformed("unexpected end of hex escape", at + high + 1)
            leads = 0xD800 <= code <= 0xDBFF
            high = match.end() if leads else -1
        if high >= 0:
            raise Malformed("unexpected end of hex escape", at + high + 1)

    def _ident(self, at: int, ident: bytes) -> int:
        found = self._text[at : at + len(ident)]
        if found == ident:
            return at + len(ident)
        if ident.startswith(found):
            raise Malformed("EOF while parsing a value", len(self._text))
        wrong = next(i for i, (a, b) in enumerate(zip(found, ident, strict=False)) if a != b)
        raise Malformed("expected ident", at + wrong + 1)

    def _peek(self, at: int, inside: str) -> bytes:
        if at >= len(self._text):
            raise Malformed(f"EOF while parsing {inside}", at)
        return self._text[at : at + 1]

    def _skip(self, at: int) -> int:
        match = _BLANKS.match(self._text, at)
        return match.end() if match else at
