"""What engines say of faults: each in its own way."""

import pytest

from modelserve.api.spec import EngineType
from servelab.node.faults import words


@pytest.mark.parametrize(
    ("engine", "first", "last"),
    [
        (EngineType.VLLM, "[core.py:1584] EngineCore failed to start.", "Failed core proc(s): {}"),
        (EngineType.SGLANG, "Scheduler hit an exception", "means the child failed."),
        (EngineType.TGI, "Error when initializing model", "Error: ShardCannotStart"),
        (EngineType.TENSORRT_LLM, "Traceback", "InvalidHeaderDeserialization"),
    ],
)
def test_an_engine_that_cannot_start_says_so_in_its_own_way(
    engine: EngineType, first: str, last: str
) -> None:
    said = words.corrupt_weights(engine)
    assert first in said[0]
    assert said[-1].endswith(last)
    assert any("SafetensorError" in line for line in said)


def test_only_vllm_tells_of_a_dead_engine_core() -> None:
    assert "EngineDeadError" in words.cuda_error(EngineType.VLLM)[-1]
    for engine in (EngineType.SGLANG, EngineType.TGI, EngineType.TRITON):
        assert not any("EngineCore" in line for line in words.cuda_error(engine))
    assert len(words.no_gpu(EngineType.VLLM)) == len(words.no_gpu(EngineType.SGLANG)) + 1
