"""Structural tags, as the released xgrammar judges them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.engine.surfaces.vllm import tags
from servelab.engine.surfaces.vllm.refusals import Refusal

ANY = {"type": "any_text"}
TAG = {"begin": "<a>", "content": ANY, "end": "</a>"}
X = {"type": "const_string", "value": "x"}


def fault(form: Any) -> str | None:
    return tags.fault({"type": "structural_tag", "format": form})


def triggered(**fields: Any) -> dict[str, Any]:
    return {"type": "triggered_tags", "triggers": ["<a"], "tags": [TAG]} | fields


def tag(**fields: Any) -> dict[str, Any]:
    return {"type": "tag"} | TAG | fields


@pytest.mark.parametrize(
    "form",
    [
        triggered(),
        triggered(tags=[TAG | {"type": "tag", "end": ["a", "b"]}], at_least_one=True),
        triggered(excludes=["x"], foo=1),
        {"type": "tags_with_separator", "tags": [TAG], "separator": ""},
        tag(begin=""),
        tag(end=["", "x"]),
        tag(content=X, end=""),
        tag(content=ANY | {"excludes": ["x"]}, end=""),
        {"type": "sequence", "elements": [ANY, X]},
        {"type": "json_schema", "json_schema": True, "style": "qwen_xml"},
        {"type": "repeat", "content": X, "min": 1, "max": 2},
        {"type": "any_tokens", "exclude_tokens": [5]},
        {"type": "grammar", "grammar": 'root ::= "a"'},
        {"type": "token", "token": 5},
        {"type": "dispatch", "rules": [["a", X]]},
    ],
    ids=str,
)
def test_a_sound_format_is_taken(form: Any) -> None:
    assert fault(form) is None


@pytest.mark.parametrize(
    "form",
    [
        triggered(triggers=["z"]),
        triggered(triggers=["<", "<a"]),
        triggered(triggers=[]),
        triggered(triggers=[""]),
        triggered(tags=[]),
        triggered(tags=[{"begin": "<a>"}]),
        triggered(tags=[TAG | {"type": "or"}]),
        triggered(tags=[TAG | {"begin": {"type": "token", "token": 5}}]),
        triggered(stop_after_first=5),
        {"type": "tags_with_separator", "tags": [], "separator": ","},
        tag(begin="", end=""),
        tag(end=[]),
        tag(end=[""]),
        tag(content={"type": "star", "content": X}, end=""),
        {"type": "sequence", "elements": []},
        {"type": "sequence", "elements": 5},
        {"type": "const_string", "value": None},
        {"type": "json_schema", "json_schema": False},
        {"type": "json_schema", "json_schema": {}, "style": "zz"},
        {"type": "regex", "pattern": ""},
        {"type": "grammar", "grammar": "root ::= b"},
        {"type": "token", "token": "x"},
        {"type": "dispatch", "rules": []},
        {"type": "zzz"},
        None,
    ],
    ids=str,
)
def test_a_faulty_format_is_told_why(form: Any) -> None:
    assert fault(form)


PARTS = ("begin", "content", "end", "tags", "triggers", "elements", "rules")
FORMS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.fixed_dictionaries(
            {"type": st.sampled_from(sorted(tags._FIELDS))},
            optional=dict.fromkeys(
                ("begin", "content", "end", "tags", "triggers", "elements", "rules"), inner
            ),
        )
    ),
    max_leaves=10,
)


@given(FORMS)
def test_any_format_is_judged(form: Any) -> None:
    assert fault(form) != ""


@pytest.mark.parametrize("text", ["{", "null", "[]", '{"format": {}}', {"format": X}, 5])
def test_what_must_come_as_text_may_be_no_tag(text: Any) -> None:
    with pytest.raises(Refusal, match="structural tag in x"):
        tags.check_text(text, "x")


def test_a_tag_may_come_as_text() -> None:
    tags.check_text(json.dumps({"type": "structural_tag", "format": X}), "x")
