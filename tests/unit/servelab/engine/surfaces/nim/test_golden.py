"""A NIM's answers, held against a list written from its documents and recorded answers."""

from pathlib import Path

from modelserve.api.spec import EngineType
from servelab.engine.checks import surface

GOLDEN = Path(__file__).parents[5] / "golden" / "surface" / "nim-1.10.1-http.json"


async def test_every_answer_is_a_nims() -> None:
    rows = surface.read(GOLDEN)
    report = await surface.check(rows, EngineType.NIM)
    assert (list(report.differences), report.equal) == ([], len(rows))
