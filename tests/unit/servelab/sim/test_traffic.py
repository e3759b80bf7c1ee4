"""Traffic of every kind is drawn as asked, streamed, and the same for equal seeds."""

import itertools
import tracemalloc
from collections.abc import Iterable
from typing import Any

import pytest

from servelab.sim import scenario, traffic
from servelab.workload import arrivals


def model(*streams: dict[str, Any]) -> scenario.SimulatedModel:
    spec = {
        "model": {"name": "meta-llama/Llama-3.1-8B-Instruct"},
        "gpu": {"product": "NVIDIA-H100-80GB-HBM3"},
    }
    return scenario.SimulatedModel.model_validate({"spec": spec, "traffic": streams})


def drawn(*streams: dict[str, Any], seed: int = 0) -> list[arrivals.Arrival]:
    return list(traffic.of(model(*streams), seed, traffic.open_trace).stream)


KINDS: list[dict[str, Any]] = [
    {"trace": "azure-code", "seconds": 300},
    {"resampleSeconds": 60, "trace": "azure-code", "seconds": 300},
    {"poisson": {"perSecond": 2, "seconds": 60}},
    {"steady": {"perSecond": 2, "seconds": 60}},
    {"gamma": {"perSecond": 2, "cv": 3, "seconds": 60}},
    {"onOff": {"perSecond": 5, "onSeconds": 5, "offSeconds": 5, "seconds": 60}},
    {"ramp": {"fromPerSecond": 0, "toPerSecond": 5, "seconds": 60}},
    {"step": {"toPerSecond": 5, "atSeconds": 30, "seconds": 60}},
    {"windows": {"perSecond": [1, 0, 3], "secondsEach": 20, "cv": 2}},
    {"serveGen": {"client": "m-mid/29", "fromSeconds": 823800, "seconds": 60}},
]


@pytest.mark.parametrize("stream", KINDS, ids=lambda each: next(iter(each)))
def test_arrivals_are_in_order_and_of_a_seed(stream: dict[str, Any]) -> None:
    found = drawn(stream)
    assert found
    assert found == sorted(found, key=lambda each: each.at_s)
    assert found == drawn(stream)
    kind = next(iter(stream))
    assert (found == drawn(stream, seed=1)) == (kind in ("trace", "steady"))


def test_streams_of_a_model_are_merged_in_order_of_time() -> None:
    trace, steady = KINDS[0], KINDS[3]
    found = drawn(trace, steady)
    assert found == sorted(found, key=lambda each: each.at_s)
    assert len(found) == len(drawn(trace)) + len(drawn(steady))


def test_a_step_is_silent_before_it() -> None:
    assert 30 <= drawn(KINDS[7])[0].at_s < 35


def test_a_client_of_servegen_has_its_own_lengths_unless_others_are_given() -> None:
    own = drawn({"serveGen": {"client": "m-small/7", "seconds": 3600}})
    assert {each.input_tokens for each in own} != {512}
    other = drawn({"serveGen": {"client": "m-small/7", "seconds": 3600}, "input": 9})
    assert {each.input_tokens for each in other} == {9}
    assert len({each.output_tokens for each in other}) > 1


def test_a_day_takes_no_memory_of_its_length() -> None:
    def lines(name: str) -> Iterable[str]:
        return itertools.chain(
            ["arrival_s,input_tokens,output_tokens\n"],
            (f"{number / 10},500,20\n" for number in range(864_000)),
        )

    stream = traffic.of(model({"trace": "day.csv"}), 0, lines).stream
    next(stream)
    tracemalloc.start()
    for _ in itertools.islice(stream, 20_000):
        pass
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 500_000  # all that was read would be five times as much
