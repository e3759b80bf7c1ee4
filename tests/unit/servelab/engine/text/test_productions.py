"""Grammars read and followed."""

import random
import re

import pytest

from servelab.engine.text.productions import Grammar


@pytest.mark.parametrize(
    ("grammar", "pattern"),
    [
        ('root ::= "a" | b\nb ::= [0-9]{2,3} "-" [a-z]+', r"a|\d{2,3}-[a-z]+"),
        ('start: "hi" " " NAME\nNAME: /[A-Z][a-z]+/', "hi [A-Z][a-z]+"),
        ('start: "a".."f" "x"~2..3 ["?"]', r"[a-f]x{2,3}\??"),
        ('start: ("a"|"b")+ // either\n', "[ab]+"),
        ("%import common.INT\nstart: INT", ".+"),
    ],
)
def test_a_text_follows_its_grammar(grammar: str, pattern: str) -> None:
    read = Grammar(grammar)
    for seed in range(30):
        assert re.fullmatch(pattern, read.write(random.Random(seed)))


def test_a_rule_may_hold_itself() -> None:
    read = Grammar('root ::= "(" root ")" | "x"')
    assert all("x" in read.write(random.Random(seed)) for seed in range(20))


@pytest.mark.parametrize(
    "grammar",
    [
        *("", "x", "root ::= x", "start: x", 'root ::= "a', 'start: "a', "root ::= (", "start: ("),
        *(
            "root ::= [a-z",
            "start: /(/",
            "root ::= 'a'",
            "start: *",
            'root ::= root "a"',
            'Root ::= "a"',
            "root ::= ",
        ),
        *('start: "a"\nstart: "b"', "start: rule{x}", 'root ::= "a";'),
    ],
)
def test_what_is_no_grammar_is_refused(grammar: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Grammar(grammar)
