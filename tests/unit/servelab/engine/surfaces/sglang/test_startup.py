"""How an SGLang server's start is divided."""

import pytest

from modelserve.decide.coldstart import Part, WarmUpPart
from servelab.engine.surfaces.sglang import startup

WARM_UP = (
    WarmUpPart(Part.PROCESS_START, 9.0),
    WarmUpPart(Part.PROFILE_RUN, 3.0),
    WarmUpPart(Part.GRAPH_CAPTURE, 6.0),
    WarmUpPart(Part.API_SERVER, 2.0),
)


def test_what_is_no_warm_up_is_the_weights() -> None:
    times = startup.times(50.0, WARM_UP)
    assert (times["load_weight"], times["kv_cache_allocation"]) == (30.0, 3.0)
    assert (times["scheduler_e2e"], times["tokenizer_e2e"]) == (48.0, 50.0)
    assert times["cuda_graph"]["decode"] == 6.0


@pytest.mark.parametrize("start_up_s", [0.0, 10.0])
def test_a_start_that_was_shorter_than_planned_has_shorter_parts(start_up_s: float) -> None:
    times = startup.times(start_up_s, WARM_UP)
    assert (times["load_weight"], times["kv_cache_allocation"]) == (0.0, 0.15 * start_up_s)


def test_an_engine_without_a_plan_tells_the_whole() -> None:
    assert startup.times(5.0, ())["tokenizer_e2e"] == 5.0
