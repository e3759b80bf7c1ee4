"""TensorRT-LLM's surface against answers written down from its source."""

from pathlib import Path

from modelserve.api.spec import EngineType
from servelab.engine.checks import surface

GOLDEN = Path(__file__).parents[5] / "golden" / "surface" / "tensorrt-llm-1.3-http.json"


async def test_every_answer_is_met() -> None:
    rows = surface.read(GOLDEN)
    report = await surface.check(rows, EngineType.TENSORRT_LLM)
    assert (list(report.differences), report.equal) == ([], len(rows))
