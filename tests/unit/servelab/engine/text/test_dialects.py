"""Calls of functions as models write them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.engine.text import dialects

NAMES = ["hermes", *dialects.OF_PARSER]
VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.lists(st.integers())
ARGUMENTS = st.dictionaries(st.text("abc_", min_size=1), VALUES, max_size=4)


@pytest.mark.parametrize("name", NAMES)
@given(arguments=ARGUMENTS)
def test_what_is_told_of_a_call_is_its_arguments(name: str, arguments: dict[str, Any]) -> None:
    made = dialects.of_parser(name)("f", arguments)
    told = "".join(part.text if part.verbatim else part.arguments for part in made.parts)
    assert json.loads(told) == json.loads(made.arguments) == arguments


@pytest.mark.parametrize("name", NAMES)
@given(arguments=ARGUMENTS)
def test_the_name_is_told_once_and_first(name: str, arguments: dict[str, Any]) -> None:
    parts = dialects.of_parser(name)("f", arguments).parts
    told = [part for part in parts if part.names or part.verbatim or part.arguments]
    assert [part.names for part in told] == [True] + [False] * (len(told) - 1)


# Each was read by the parser of vLLM 0.33 of that name.
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hermes", '<tool_call>\n{"name": "f", "arguments": {"a": "x", "n": 1}}\n</tool_call>'),
        ("llama3_json", '{"name": "f", "parameters": {"a": "x", "n": 1}}'),
        ("pythonic", '[f(a="x", n=1)]'),
        ("mistral", '[TOOL_CALLS]f{"a": "x", "n": 1}'),
        (
            "qwen3_coder",
            "<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n"
            "<parameter=n>\n1\n</parameter>\n</function>\n</tool_call>",
        ),
    ],
)
def test_each_parser_has_its_own_writing(name: str, text: str) -> None:
    assert dialects.of_parser(name)("f", {"a": "x", "n": 1}) == text
