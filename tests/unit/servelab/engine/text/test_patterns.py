"""Texts drawn from regular expressions."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.engine.text import patterns


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "abc",
        "a|b|",
        "[a-c]+[^a-z]{2,}",
        r"\d{4}-\d\d?",
        r"(?:x|(?P<name>y)z)*?",
        r"^\w+\s\W$",
        r"[\]\-x]{3}",
        r"\x41é\.",
        "[]a]",
        "a{2}{",
        r"\bword\b",
        "x{,3}",
    ],
)
@pytest.mark.parametrize("seed", range(10))
def test_the_whole_pattern_matches(pattern: str, seed: int) -> None:
    text = patterns.draw(pattern, random.Random(seed))
    assert text is not None
    assert re.fullmatch(pattern.replace("{,", r"\{,"), text), text


@pytest.mark.parametrize(
    "pattern",
    [
        *("(a", "a)", "[a", "[", "(?=a)b", r"(a)\1", "(?<=a)b", r"\p{L}", "a{5,2}", "\\"),
        *("(?i)a", "[^ -~]", r"\u12", "((){60000}){60000}", "a{99999}", "(" * 5000, "[a-\\d]"),
    ],
)
def test_what_is_not_understood_is_told(pattern: str) -> None:
    assert patterns.draw(pattern, random.Random(1)) is None


@given(st.text(max_size=30), st.integers(0, 9))
def test_no_pattern_raises(pattern: str, seed: int) -> None:
    patterns.draw(pattern, random.Random(seed))


@given(st.text("ab[](){}|*+?\\^$.-,12wds:=<>!P", max_size=20), st.integers(0, 9))
def test_no_pattern_of_signs_raises(pattern: str, seed: int) -> None:
    patterns.draw(pattern, random.Random(seed))


def test_a_pattern_of_megabytes_is_not_read() -> None:
    assert patterns.draw("[a-z]?" * 200_000, random.Random(1)) is None


def test_steps_count_even_where_they_bring_no_text() -> None:
    _, steps = patterns.Pattern("(){4000}").draw(random.Random(1))
    assert steps >= 4000
