"""The load that the engine core is measured with."""

import random

import pytest

from modelserve.api.spec import BatchingMode
from servelab.bench import core
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.core.stepping import EngineCore


def test_a_closed_loop_runs_all_requests_and_no_more_than_its_clients_at_a_time() -> None:
    config = CoreConfig(8, 64, 100, kv_blocks=50, batching=BatchingMode.CONTINUOUS)
    engine = EngineCore(config, SteadyLaw(1.0), random.Random(0))
    ran = core.loop(engine, [(10, 5)] * 7, clients=2)
    assert (ran.requests, ran.tokens, ran.steps) == (7, 35, 20)


def test_jumps_and_steps_come_to_the_same() -> None:
    jumped, stepped = (
        core.loop(core.engine(jumps=jumps), [(100, 20)] * 300) for jumps in (True, False)
    )
    assert (jumped.tokens, jumped.steps) == (stepped.tokens, stepped.steps)


@pytest.mark.parametrize("count", [1, 5000])
def test_the_trace_gives_as_many_conversations_as_asked_for(count: int) -> None:
    assert len(core.conversations(count)) == count


def test_the_engine_has_prefix_cache_and_chunked_prefill() -> None:
    config = core.engine().config
    assert (config.prefix_caching, config.chunked_prefill, config.jitter) == (True, True, 0.0)


def test_a_report_has_all_figures() -> None:
    names = [figure.name for figure in core.run(200, lambda text: None)]
    assert names[:5] == [
        "requests_per_s",
        "azure_lengths_requests_per_s",
        "tokens_per_s",
        "steps_per_s",
        "speedup_over_stepping",
    ]
