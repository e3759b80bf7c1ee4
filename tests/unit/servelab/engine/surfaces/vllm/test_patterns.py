"""Regular expressions that cannot be used."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.engine.surfaces.vllm import patterns


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "a)",
        "[",
        "*a",
        "a{3,2}",
        "a{",
        "(?=a)",
        "(?<!a)b",
        r"(a)\1",
        r"\bword",
        "[z-a]",
        "(?#c)a",
    ],
)
def test_a_pattern_that_cannot_be_read_is_faulty(pattern: str) -> None:
    assert patterns.fault(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "^[a-z]+$",
        r"\d{3}-\d{4}",
        r"(?P<year>\d+)",
        "(?i)abc",
        "a|",
        r"\p{L}+",
        r"[\]a-]",
        "[[:alpha:]]",
    ],
)
def test_a_sound_pattern_has_no_fault(pattern: str) -> None:
    assert patterns.fault(pattern) is None


@given(st.text(alphabet="ab[]{}()?*+|\\^$-,19:", max_size=12))
def test_any_pattern_is_judged(pattern: str) -> None:
    assert patterns.fault(pattern) != ""
