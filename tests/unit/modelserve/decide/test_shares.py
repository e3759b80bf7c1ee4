"""Shares of the in-flight cap."""

from hypothesis import given
from hypothesis import strategies as st

from modelserve.api import wire
from modelserve.decide import shares

WEIGHTS = st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 1e6), min_size=1)


def test_the_cap_is_a_quarter_more_than_the_slots_rounded_up() -> None:
    assert [shares.cap(slots) for slots in (1, 4, 16, 30)] == [2, 5, 20, 38]


def test_shares_follow_what_gateways_hold_and_have_in_flight() -> None:
    assert shares.split(16, {"a": 3, "b": 1}) == {"a": 15, "b": 5}


def test_without_traffic_it_is_split_evenly() -> None:
    assert shares.split(4, {"a": 0, "b": 0}) == {"a": 3, "b": 2}


@given(st.integers(1, 4096), WEIGHTS)
def test_shares_add_up_to_the_cap_but_for_the_least_one_each(
    slots: int, weights: dict[str, float]
) -> None:
    found = shares.split(slots, weights)
    assert all(share >= 1 for share in found.values())
    assert shares.cap(slots) <= sum(found.values()) <= shares.cap(slots) + len(weights)


def test_weights_count_one_model_only() -> None:
    models = (
        wire.ModelDemand("default", "a", held=2, in_flight={"p": 3}),
        wire.ModelDemand("other", "a", held=9),
    )
    snapshot = wire.DemandSnapshot("g", "e", 1, models)
    assert shares.weights([snapshot], "default", "a") == {"g": 5.0}
