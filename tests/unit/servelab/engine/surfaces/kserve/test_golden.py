"""The model server's answers, held against a list written from its source."""

from pathlib import Path

from modelserve.api.spec import EngineType
from modelserve.engines import kserve
from servelab.engine.checks import surface

GOLDEN = Path(__file__).parents[5] / "golden" / "surface" / "kserve-0.20.0-http.json"


async def test_every_answer_is_the_model_servers() -> None:
    rows = surface.read(GOLDEN)
    report = await surface.check(rows, EngineType.VLLM, (kserve.FRONT_END,))
    assert (list(report.differences), report.equal) == ([], len(rows))
