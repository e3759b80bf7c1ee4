"""Context-free grammars in the notations of llama.cpp (GBNF) and of Lark: read, and followed.

Read is what there is in common: rules, texts, classes of characters or patterns, groups,
alternatives and repetitions. What stands in directives is believed.
"""

import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from servelab.engine.text import patterns, scalars

_GBNF_HEAD = re.compile(r"::=")
_TOKENS = {
    True: re.compile(
        r'(?P<text>"(?:\\.|[^"\\\n])*")|(?P<pattern>\[(?:\\.|[^\]\\\n])*\])|(?P<skip>#[^\n]*|\s+)'
        r"|(?P<head>[\w-]+\s*::=)|(?P<name>[A-Za-z_][\w-]*)|(?P<times>\{\d+(?:,\d*)?\})"
        r"|(?P<mark>[()|?*+])"
    ),
    False: re.compile(
        r'(?P<text>"(?:\\.|[^"\\\n])*"i?)|(?P<pattern>/(?!/)(?:\\.|[^/\\\n])+/[imslux]*)'
        r"|(?P<skip>//[^\n]*|#[^\n]*|\s+)|(?P<directive>%[^\n]*)"
        r"|(?P<head>[!?]*\w+(?:\.-?\d+)?\s*:)|(?P<alias>->\s*\w+)|(?P<name>\w+)"
        r"|(?P<times>~\s*\d+(?:\s*\.\.\s*\d+)?)|(?P<range>\.\.)|(?P<mark>[()|?*+\[\]])"
    ),
}
_MOST_DEEP = 12
_MOST_REPEATS = 3


class Token(NamedTuple):
    """A piece of a grammar; of a rule's head the name alone."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Leaf:
    """A text, a pattern, or a rule, by its kind."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """Parts one after the other."""

    parts: "Sequence[Node]"


@dataclass(frozen=True, slots=True)
class Either:
    """One of several."""

    parts: "Sequence[Node]"


@dataclass(frozen=True, slots=True)
class Repeated:
    """The same several times; ``most`` None: as often as one likes."""

    part: "Node"
    least: int
    most: int | None


Node = Leaf | Row | Either | Repeated
_TIMES: Mapping[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}


class Grammar:
    """A grammar that has been read. Raises ValueError where it cannot be."""

    def __init__(self, text: str) -> None:
        self._gbnf = _GBNF_HEAD.search(text) is not None
        self._start = "root" if self._gbnf else "start"
        self.rules: dict[str, Node] = {}
        self._given: set[str] = set()  # by a directive
        self._read(list(self._tokens(text)))
        if self._start not in self.rules:
            raise ValueError(f"there is no rule {self._start}")
        for name in {name for rule in self.rules.values() for name in _names(rule)}:
            if name not in self.rules and name not in self._given:
                raise ValueError(f"there is no rule {name}")
        self._heights = self._measured()
        if math.isinf(self._heights[self._start]):
            raise ValueError(f"no text of {self._start} ever ends")

    def write(self, rng: random.Random) -> str:
        """A text that follows it; where rules nest deeply, the way to its end is taken."""
        return self._made(self.rules[self._start], rng, 0)

    def _tokens(self, text: str) -> Iterator[Token]:
        place, known = 0, _TOKENS[self._gbnf]
        while place < len(text):
            match = known.match(text, place)
            if match is None:
                raise ValueError(f"{text[place : place + 10]!r} is no part of a grammar")
            kind, place = str(match.lastgroup), match.end()
            if kind == "directive":
                self._given |= set(re.findall(r"\w+", match[0]))
            if kind not in ("skip", "alias"):
                yield Token(kind, match[0])

    def _read(self, tokens: list[Token]) -> None:
        tokens.reverse()
        while tokens:
            token = tokens.pop()
            if token.kind == "directive":
                continue
            if token.kind != "head":
                raise ValueError(f"{token.text!r} belongs to no rule")
            name = re.split(r"[.:\s]", token.text.lstrip("!?"))[0]
            if name in self.rules:
                raise ValueError(f"rule {name} is there twice")
            self.rules[name] = self._alternatives(tokens)

    def _alternatives(self, tokens: list[Token]) -> Node:
        parts = [self._row(tokens)]
        while tokens and tokens[-1].text == "|":
            tokens.pop()
            parts.append(self._row(tokens))
        return parts[0] if len(parts) == 1 else Either(parts)

    def _row(self, tokens: list[Token]) -> Node:
        parts: list[Node] = []
        while tokens and tokens[-1].kind != "head" and tokens[-1].text not in ("|", ")", "]"):
            if tokens[-1].kind == "directive" and not tokens[-1].text.startswith("%json"):
                break
            parts.append(self._repeated(tokens))
        if not parts and self._gbnf:
            raise ValueError("a part of a rule is empty")
        return parts[0] if len(parts) == 1 else Row(parts)

    def _repeated(self, tokens: list[Token]) -> Node:
        part = self._single(tokens.pop(), tokens)
        if len(tokens) > 1 and tokens[-1].kind == "range":
            tokens.pop()
            last = tokens.pop()
            part = Leaf("pattern", f"[{_unquoted(part)}-{_unquoted(Leaf(*last))}]")
        while tokens and (tokens[-1].text in _TIMES or tokens[-1].kind == "times"):
            part = Repeated(part, *_times(tokens.pop().text))
        return part

    def _single(self, token: Token, tokens: list[Token]) -> Node:
        if token.text in ("(", "["):
            inner = self._alternatives(tokens)
            if not tokens or tokens.pop().text != {"(": ")", "[": "]"}[token.text]:
                raise ValueError(f"{token.text} is not closed")
            return inner if token.text == "(" else Repeated(inner, 0, 1)
        if token.kind == "pattern":
            pattern = token.text if self._gbnf else token.text[1 : token.text.rindex("/")]
            _check(pattern)
            return Leaf("pattern", pattern)
        if token.kind in ("text", "name", "directive"):
            return Leaf(token.kind, token.text)
        raise ValueError(f"{token.text!r} stands where a part of a rule should")

    def _made(self, node: Node, rng: random.Random, depth: int) -> str:
        if isinstance(node, Row):
            return "".join(self._made(part, rng, depth) for part in node.parts)
        if isinstance(node, Either):
            shortest = min(node.parts, key=self._height)
            part = rng.choice(node.parts) if depth < _MOST_DEEP else shortest
            return self._made(part, rng, depth + 1)
        if isinstance(node, Repeated):
            more = _MOST_REPEATS if node.most is None else node.most - node.least
            more = 0 if depth >= _MOST_DEEP else max(0, min(more, _MOST_REPEATS))
            count = rng.randint(node.least, node.least + more)
            return "".join(self._made(node.part, rng, depth + 1) for _ in range(count))
        if node.kind == "text":
            return _unquoted(node)
        if node.kind == "pattern":
            return patterns.Pattern(node.text).draw(rng)[0] or ""
        rule = self.rules.get(node.text)
        return scalars.words(rng) if rule is None else self._made(rule, rng, depth + 1)

    def _measured(self) -> dict[str, float]:
        """How deep rules nest at the least until a text of each ends; infinite: never."""
        self._heights = dict.fromkeys(self.rules, math.inf)
        while True:
            found = {name: 1 + self._height(rule) for name, rule in self.rules.items()}
            if found == self._heights:
                return found
            self._heights = found

    def _height(self, node: Node) -> float:
        if isinstance(node, Leaf):
            return self._heights.get(node.text, 0.0) if node.kind == "name" else 0.0
        if isinstance(node, Repeated):
            return self._height(node.part) if node.least else 0.0
        heights = map(self._height, node.parts)
        return min(heights) if isinstance(node, Either) else max(heights, default=0.0)


def _names(node: Node) -> Iterator[str]:
    if isinstance(node, Leaf):
        yield from [node.text] if node.kind == "name" else []
    elif isinstance(node, Repeated):
        yield from _names(node.part)
    else:
        for part in node.parts:
            yield from _names(part)


def _times(text: str) -> tuple[int, int | None]:
    if text in _TIMES:
        return _TIMES[text]
    least, *most = re.findall(r"\d+", text)
    return int(least), int(most[0]) if most else None if "," in text else int(least)


def _unquoted(leaf: Node) -> str:
    text = leaf.text if isinstance(leaf, Leaf) else ""
    inner = text.rstrip("i")[1:-1] if text.startswith('"') else text
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), inner)


def _check(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no pattern: {error}") from None
