"""Patches and selectors as the API server understands them."""

from typing import Any

import pytest

from modelserve import errors
from modelserve.testing import patches

ITEM = {
    "metadata": {"name": "a", "labels": {"app": "x", "tier": "web"}},
    "spec": {"nodeName": "n1"},
}


@pytest.mark.parametrize(
    ("labels", "fields", "selected"),
    [
        ("", "", True),
        ("app=x", "", True),
        ("app==x,tier=web", "", True),
        ("app=y", "", False),
        ("app!=y,none!=z", "", True),
        ("app,!none", "", True),
        ("!app", "", False),
        ("app in (w, x),tier notin (db)", "", True),
        ("app notin (x)", "", False),
        ("", "metadata.name=a,spec.nodeName=n1", True),
        ("", "spec.nodeName!=n1", False),
        ("", "spec.nodeName=", False),
        ("", "status.phase=", True),
    ],
)
def test_selectors(labels: str, fields: str, selected: bool) -> None:
    assert patches.matches(ITEM, labels, fields) is selected


def test_a_merge_patch_replaces_lists_and_removes_nulls() -> None:
    live = {"a": [1, 2], "b": {"c": 1, "d": 2}}
    assert patches.merge_patch(live, {"a": [3], "b": {"c": None}}) == {"a": [3], "b": {"d": 2}}


def test_a_strategic_patch_merges_keyed_lists() -> None:
    live = {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]}
    patch = {"conditions": [{"type": "B", "status": "False"}]}
    assert [c["status"] for c in patches.strategic_patch(live, patch)["conditions"]] == [
        "True",
        "False",
    ]


def test_a_json_patch_adds_replaces_and_removes() -> None:
    operations: list[dict[str, Any]] = [
        {"op": "add", "path": "/a~1b", "value": [1]},
        {"op": "add", "path": "/a~1b/-", "value": 2},
        {"op": "replace", "path": "/c", "value": 3},
        {"op": "remove", "path": "/d"},
    ]
    assert patches.json_patch({"c": 0, "d": 0}, operations) == {"a/b": [1, 2], "c": 3}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/c", "value": 9},
        {"op": "replace", "path": "/none", "value": 1},
        {"op": "remove", "path": "/none/deeper"},
        {"op": "move", "path": "/c", "from": "/d"},
    ],
    ids=["test", "replace", "remove", "unknown"],
)
def test_a_json_patch_that_does_not_fit_is_invalid(operation: dict[str, object]) -> None:
    with pytest.raises(errors.Invalid):
        patches.json_patch({"c": 0}, [operation])
