"""SGLang's surface against what the real server answered, masked."""

from pathlib import Path

import pytest

from modelserve.api.spec import EngineType
from servelab.engine.checks import surface

GOLDEN = Path(__file__).parents[5] / "golden" / "surface"
TOOLS = (("tool-call-parser", "hermes"), ("enable-response-store", ""))


@pytest.mark.parametrize(
    ("recording", "options"),
    [
        ("sglang-0.5.23-http.json", ()),
        ("sglang-0.5.23-control-http.json", ()),
        ("sglang-0.5.23-flags-http.json", (("enable-metrics", ""), ("enable-cache-report", ""))),
        ("sglang-0.5.23-tools-http.json", TOOLS),
    ],
)
async def test_every_recorded_answer_is_met(
    recording: str, options: tuple[tuple[str, str], ...]
) -> None:
    rows = surface.read(GOLDEN / recording)
    report = await surface.check(rows, EngineType.SGLANG, options)
    assert (list(report.differences), report.equal) == ([], len(rows))
