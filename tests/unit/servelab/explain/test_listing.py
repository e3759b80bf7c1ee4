"""The catalogue as rows."""

import pytest

from modelserve import errors
from servelab.explain import listing


@pytest.mark.parametrize("kind", listing.KINDS)
def test_every_row_of_a_kind_has_the_same_columns_and_a_source(kind: str) -> None:
    rows = listing.rows(kind)
    assert {tuple(row) for row in rows} == {tuple(rows[0])}
    assert all(list(row.values())[-1] for row in rows)


@pytest.mark.parametrize("kind", listing.KINDS)
def test_every_row_can_be_asked_for_in_full(kind: str) -> None:
    for row in listing.rows(kind):
        assert listing.entry(kind, row["name"])["figures"]


def test_a_filter_keeps_the_rows_that_hold_the_word() -> None:
    names = [row["name"] for row in listing.matching(listing.rows("gpus"), "H100")]
    assert names == ["h100-pcie", "h100-nvl", "h100-sxm"]


@pytest.mark.parametrize("kind", listing.KINDS)
def test_an_unknown_name_is_refused(kind: str) -> None:
    with pytest.raises(errors.UnknownName):
        listing.entry(kind, "no-such-thing-at-all")
