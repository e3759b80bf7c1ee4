"""Max–min fair rates: arithmetic, and what must hold of any flows over any links."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.timing import fairness

LINKS = ("a", "b", "c", "d", "e")
EXACT = 1 + 1e-9


def demand(*path: str, cap: float = math.inf, weight: float = 1.0) -> fairness.Demand:
    return fairness.Demand(path, cap, weight)


capacities = st.fixed_dictionaries(
    {link: st.one_of(st.just(0.0), st.floats(1.0, 1e10)) for link in LINKS}
)
paths = st.lists(st.sampled_from(LINKS), min_size=1, max_size=4, unique=True)
demands = st.lists(
    st.builds(
        fairness.Demand,
        paths.map(tuple),
        st.one_of(st.just(math.inf), st.floats(1.0, 1e10)),
        st.sampled_from([1.0, 2.0, 8.0]),
    ),
    max_size=12,
)


def loads(wanted: list[fairness.Demand], rates: list[float]) -> dict[str, float]:
    return {
        link: sum(rate for one, rate in zip(wanted, rates, strict=True) if link in one.path)
        for link in LINKS
    }


@pytest.mark.parametrize(
    ("wanted", "links", "rates"),
    [
        pytest.param([], {}, [], id="nobody"),
        pytest.param([demand("a")] * 4, {"a": 40.0}, [10.0] * 4, id="equal shares"),
        pytest.param([demand("a", cap=4.0), demand("a")], {"a": 10.0}, [4.0, 6.0], id="a cap"),
        pytest.param([demand(cap=3.0)], {}, [3.0], id="no link, only a cap"),
        pytest.param(
            [demand("a", "b"), demand("a"), demand("b")],
            {"a": 10.0, "b": 4.0},
            [2.0, 8.0, 2.0],
            id="a chain",
        ),
        pytest.param([demand("a"), demand("a")], {"a": 0.0}, [0.0, 0.0], id="a link that hangs"),
        pytest.param([demand("a", weight=8), demand("a")], {"a": 9.0}, [8.0, 1.0], id="weights"),
        pytest.param(
            [demand("a", cap=1.0, weight=8), demand("a")],
            {"a": 9.0},
            [1.0, 8.0],
            id="a cap is on the whole flow",
        ),
    ],
)
def test_rates_are_what_arithmetic_says(
    wanted: list[fairness.Demand], links: dict[str, float], rates: list[float]
) -> None:
    assert fairness.rates(wanted, links) == pytest.approx(rates)


def test_a_link_without_a_rate_is_an_error() -> None:
    with pytest.raises(KeyError):
        fairness.rates([demand("a")], {})


@given(demands, capacities)
def test_no_link_carries_more_than_it_can(
    wanted: list[fairness.Demand], links: dict[str, float]
) -> None:
    used = loads(wanted, fairness.rates(wanted, links))
    assert all(used[link] <= links[link] * EXACT for link in LINKS)


@given(demands, capacities)
def test_every_flow_is_held_by_its_cap_or_by_a_full_link_where_none_is_larger(
    wanted: list[fairness.Demand], links: dict[str, float]
) -> None:
    rates = fairness.rates(wanted, links)
    used = loads(wanted, rates)
    for one, rate in zip(wanted, rates, strict=True):
        share = rate / one.weight
        assert rate >= one.cap_bytes_per_s / EXACT or any(
            used[link] >= links[link] / EXACT
            and all(
                share >= other_rate / other.weight / EXACT
                for other, other_rate in zip(wanted, rates, strict=True)
                if link in other.path
            )
            for link in one.path
        )


@given(demands, capacities, st.randoms(use_true_random=False))
def test_the_order_of_flows_does_not_matter(
    wanted: list[fairness.Demand], links: dict[str, float], rng: random.Random
) -> None:
    rates = fairness.rates(wanted, links)
    order = list(range(len(wanted)))
    rng.shuffle(order)
    again = fairness.rates([wanted[place] for place in order], links)
    assert again == pytest.approx([rates[place] for place in order], rel=1e-9, abs=1e-6)


@given(demands, capacities, st.floats(0.1, 10.0))
def test_rates_scale_with_the_links(
    wanted: list[fairness.Demand], links: dict[str, float], factor: float
) -> None:
    rates = fairness.rates(wanted, links)
    larger = [fairness.Demand(d.path, d.cap_bytes_per_s * factor, d.weight) for d in wanted]
    again = fairness.rates(larger, {link: rate * factor for link, rate in links.items()})
    assert again == pytest.approx([rate * factor for rate in rates], rel=1e-9, abs=1e-6)


@given(demands, capacities)
def test_a_link_that_serves_less_than_it_can_holds_nobody(
    wanted: list[fairness.Demand], links: dict[str, float]
) -> None:
    rates = fairness.rates(wanted, links)
    used = loads(wanted, rates)
    idle = {
        link: 2 * rate + 1 if used[link] < rate * 0.999 else rate for link, rate in links.items()
    }
    assert fairness.rates(wanted, idle) == pytest.approx(rates, rel=1e-9, abs=1e-6)
