"""When the lines of a cold start are due."""

import itertools

import pytest

from modelserve.api import wire
from modelserve.catalog import gpus
from modelserve.decide import coldstart, nodefacts
from modelserve.engines import launch
from servelab.engine.surfaces import startlines


@pytest.fixture
def plan() -> coldstart.Plan:
    container = {"command": ["vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct"]}
    gpu = gpus.find("h100")
    started = launch.parse(container, {}, gpu)
    assert started is not None
    return coldstart.plan(started, gpu, nodefacts.node_rates({}), nodefacts.CacheState())


def test_a_part_of_the_warm_up_is_told_when_it_ends(plan: coldstart.Plan) -> None:
    lines = startlines.warm_up(plan, lambda part: [part.name])
    ends_s = itertools.accumulate(part.duration_s for part in plan.warm_up)
    assert [line.text for line in lines] == [part.name for part in plan.warm_up]
    assert [line.share * plan.warm_up_s for line in lines] == pytest.approx(list(ends_s))
    assert {line.phase for line in lines} == {wire.Phase.WARM_UP}


@pytest.mark.parametrize(("n_bytes", "count"), [(1, 1), (5_000_000_000, 1), (16_060_000_000, 4)])
def test_a_checkpoint_is_loaded_file_by_file(n_bytes: int, count: int) -> None:
    assert list(startlines.shards(n_bytes)) == [(done, count) for done in range(count + 1)]


def test_of_a_checkpoint_that_is_not_read_no_file_is() -> None:
    assert not list(startlines.shards(0))


def test_the_seconds_of_a_phase_stand_at_its_marks() -> None:
    text = f"took {startlines.took('.2f')} s, {startlines.paced(1, 4)}"
    assert startlines.timed(text, 8.0) == "took 8.00 s, 00:02<00:06,  2.00s/it"


@pytest.mark.parametrize("word", ["{took:x}", "{pace:1/0}", "took:.2f", "{"])
def test_no_word_of_a_command_line_is_a_mark(word: str) -> None:
    assert startlines.timed(f"served_model_name={word}", 8.0) == f"served_model_name={word}"
