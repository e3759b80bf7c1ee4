"""Owners of fields, without a cluster around them."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from modelserve.testing import field_owners

SCALARS = st.one_of(st.integers(-9, 9), st.booleans(), st.text("ab", min_size=1, max_size=2))
KEYS = st.text("xyz", min_size=1, max_size=2)
VALUES = st.recursive(
    SCALARS | st.lists(SCALARS, max_size=2),
    lambda inner: st.dictionaries(KEYS, inner, min_size=1, max_size=3),
    max_leaves=6,
)
BODIES = st.dictionaries(KEYS, VALUES, min_size=1, max_size=3)


def container(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


@given(BODIES, BODIES)
def test_what_is_applied_is_what_is_there(live: dict[str, Any], applied: dict[str, Any]) -> None:
    merged = field_owners.merge(live, applied)
    for path in field_owners.fields_of(applied):
        assert field_owners.get(merged, path) == field_owners.get(applied, path)


@given(BODIES, BODIES)
def test_merging_again_changes_nothing(live: dict[str, Any], applied: dict[str, Any]) -> None:
    once = field_owners.merge(live, applied)
    assert field_owners.merge(once, applied) == once


@given(BODIES)
def test_removing_every_field_leaves_nothing(body: dict[str, Any]) -> None:
    field_owners.remove(body, field_owners.fields_of(body), frozenset())
    assert body == {}


@given(BODIES)
def test_fields_that_are_kept_stay(body: dict[str, Any]) -> None:
    fields = field_owners.fields_of(body)
    before = {path: field_owners.get(body, path) for path in fields}
    field_owners.remove(body, fields, fields)
    assert {path: field_owners.get(body, path) for path in fields} == before


def test_items_of_keyed_lists_are_merged_by_their_key() -> None:
    live = {"containers": [container("a", image="1", tty=True), container("b", image="1")]}
    applied = {"containers": [container("a", image="2"), container("c", image="1")]}
    merged = field_owners.merge(live, applied)
    assert merged["containers"] == [
        container("a", image="2", tty=True),
        container("b", image="1"),
        container("c", image="1"),
    ]


def test_an_item_goes_with_its_only_owner() -> None:
    body = {"containers": [container("a", image="1"), container("b", image="1")]}
    only_b = field_owners.fields_of({"containers": [container("b", image="1")]})
    field_owners.remove(body, field_owners.fields_of(body) - only_b, only_b)
    assert body == {"containers": [container("b", image="1")]}


def test_an_item_stays_while_another_owns_a_field_of_it() -> None:
    body = {"containers": [container("a", image="1", tty=True)]}
    other = field_owners.fields_of({"containers": [container("a", tty=True)]})
    field_owners.remove(body, field_owners.fields_of(body), other)
    assert body == {"containers": [container("a", tty=True)]}


def test_paths_read_as_the_api_server_writes_them() -> None:
    [path] = [
        p
        for p in field_owners.fields_of({"containers": [container("a", image="1")]})
        if p[-1] == "f:image"
    ]
    assert field_owners.describe(path) == '.containers[name="a"].image'
    assert field_owners.to_fields_v1(frozenset({path})) == {
        "f:containers": {'k:{"name":"a"}': {"f:image": {}}}
    }
