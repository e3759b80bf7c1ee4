"""Who mistypes a field is told which one was meant."""

import pytest

from servelab.sim import knowing
from servelab.sim.checking import Place


@pytest.mark.parametrize(
    ("place", "said"),
    [
        pytest.param(("model",), "did you mean models", id="top"),
        pytest.param(("models", 0, "spec", "scaling", "minReplica"), "minReplicas", id="deep"),
        pytest.param(("models", 0, "traffic", 0, "posson"), "poisson", id="in a list"),
        pytest.param(("pools", 0, "nodes", "ElasticNodes", "maxx"), "max", id="one of two"),
        pytest.param(("objective", "zzz"), "there are ttftSeconds, tpotSeconds", id="nothing near"),
    ],
)
def test_the_nearest_field_is_named(place: Place, said: str) -> None:
    assert said in knowing.hint(place)


def test_where_nothing_is_known_nothing_is_said() -> None:
    assert knowing.hint(("nowhere", "x")) == ""
