"""The router's answers and metrics, held against lists written from its source."""

from pathlib import Path

from modelserve.api.spec import EngineType
from servelab.engine.checks import surface

GOLDEN = Path(__file__).parents[5] / "golden" / "surface" / "tgi-3.3.7-http.json"


async def test_every_answer_is_the_routers() -> None:
    rows = surface.read(GOLDEN)
    report = await surface.check(rows, EngineType.TGI)
    assert (list(report.differences), report.equal) == ([], len(rows))
