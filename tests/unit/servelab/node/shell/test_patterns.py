"""Patterns of grep."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.node.shell import patterns

PIECES = st.lists(st.sampled_from(["a", "b", ".", ".*", "ab"]), max_size=5).map("".join)


def has(text: str, line: str, **flags: bool) -> bool:
    options = {"extended": False, "plain": False, "ignore_case": False, **flags}
    found = patterns.parse(text, **options)
    return patterns.matches(found, line, ignore_case=options["ignore_case"])


@given(PIECES, st.text("ab", max_size=8), st.sampled_from(["", "^"]), st.sampled_from(["", "$"]))
def test_they_find_what_regular_expressions_find(
    middle: str, line: str, start: str, end: str
) -> None:
    text = start + middle + end
    assert has(text, line) is bool(re.search(text, line))


@pytest.mark.parametrize(
    ("text", "flags", "line", "found"),
    [
        ("a|b", {"extended": True}, "xb", True),
        ("a|b", {}, "xb", False),
        ("a\\|b", {}, "xb", True),
        ("ABC", {"ignore_case": True}, "xabcx", True),
        ("a.c", {"plain": True}, "abc", False),
        ("a\\.c", {}, "a.c", True),
        ("a\\.c", {}, "abc", False),
    ],
)
def test_flags_and_escapes(text: str, flags: dict[str, bool], line: str, found: bool) -> None:
    assert has(text, line, **flags) is found


def test_no_pattern_takes_for_ever() -> None:
    assert not has(".*a" * 200 + "b", "a" * 20_000)
