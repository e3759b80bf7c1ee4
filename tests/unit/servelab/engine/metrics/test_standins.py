"""A mock engine is found under the paths and names of the engine it stands in for."""

import pytest

from modelserve.adapters import gauges
from modelserve.api.spec import EngineType
from modelserve.engines import profiles
from servelab.engine.metrics import standins


@pytest.mark.parametrize("engine", [e for e in EngineType if e is not EngineType.VLLM])
def test_the_operator_reads_its_queue_under_the_engines_own_names(engine: EngineType) -> None:
    profile = profiles.of(engine)
    text = standins.LoadGauges(profile, 1.7e9).render(3, 7, 0.25).encode()
    kv_usage = 0.25 if profile.metrics.kv_usage else 0.0
    assert gauges.parse_queue(text, profile.metrics) == (7, 3, kv_usage)


def test_vllms_own_gauges_are_not_told_twice() -> None:
    assert standins.LoadGauges(profiles.of(EngineType.VLLM), 1.7e9).render(3, 7, 0.25) == ""
