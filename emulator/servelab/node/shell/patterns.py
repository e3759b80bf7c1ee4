"""Patterns of ``grep``: text with ``.``, ``.*``, ``^``, ``$`` and alternatives.

Not Python's own: a pattern that it takes for ever to try would stop every pod of the process.
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pattern:
    """Pieces that must follow each other, with anything between."""

    pieces: Sequence[str]
    at_start: bool
    at_end: bool

    def found_in(self, line: str) -> bool:
        """Whether a line has it. The earliest place of each piece leaves the most for the next."""
        at = 0
        for number, piece in enumerate(self.pieces):
            last = number == len(self.pieces) - 1
            if last and self.at_end:
                start = len(line) - len(piece)
                fits = start >= at and _matches(piece, line, start)
                return fits and (number > 0 or not self.at_start or start == 0)
            if number == 0 and self.at_start:
                found = 0 if _matches(piece, line, 0) else -1
            else:
                found = _find(piece, line, at)
            if found < 0:
                return False
            at = found + len(piece)
        return True


# Longer ones are not to be parsed.
MOST_CHARACTERS = 256


def parse(text: str, *, extended: bool, plain: bool, ignore_case: bool) -> Sequence[Pattern]:
    """The alternatives of a pattern; ``plain`` text has no special characters."""
    text = text.lower() if ignore_case else text
    if plain:
        return [Pattern([_escape(text)], False, False)]
    return [_pattern(each) for each in text.split("|" if extended else "\\|")]


def matches(patterns: Sequence[Pattern], line: str, *, ignore_case: bool) -> bool:
    """Whether a line has one of them."""
    line = line.lower() if ignore_case else line
    return any(each.found_in(line) for each in patterns)


# Stands for a dot that means any character.
_ANY = "\0"


def _pattern(text: str) -> Pattern:
    at_start, at_end = text.startswith("^"), text.endswith("$") and not text.endswith("\\$")
    text = text[1:] if at_start else text
    text = text[:-1] if at_end else text
    pieces, piece, at = [], "", 0
    while at < len(text):
        if text.startswith(".*", at):
            pieces.append(piece)
            piece, at = "", at + 2
        elif text[at] == "\\" and at + 1 < len(text):
            piece, at = piece + text[at + 1], at + 2
        else:
            piece, at = piece + (_ANY if text[at] == "." else text[at]), at + 1
    return Pattern([*pieces, piece], at_start, at_end)


def _escape(text: str) -> str:
    return text.replace(_ANY, "")


def _find(piece: str, line: str, at: int) -> int:
    if _ANY not in piece:
        return line.find(piece, at)
    found = _compiled(piece).search(line, at)
    return -1 if found is None else found.start()


def _matches(piece: str, line: str, at: int) -> bool:
    return _compiled(piece).match(line, at) is not None


@functools.lru_cache(maxsize=64)
def _compiled(piece: str) -> re.Pattern[str]:
    """Without anything that repeats, Python's own are as quick as any."""
    return re.compile(
        "".join("." if char == _ANY else re.escape(char) for char in piece), re.DOTALL
    )
