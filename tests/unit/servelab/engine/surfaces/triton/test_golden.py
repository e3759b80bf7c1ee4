"""Both front ends' answers, held against lists written from their source."""

from pathlib import Path

import pytest

from modelserve.api.spec import EngineType
from modelserve.engines import triton
from servelab.engine.checks import surface

FOLDER = Path(__file__).parents[5] / "golden" / "surface"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param("triton-2.61.0-openai-http.json", (), id="OpenAI"),
        pytest.param("triton-2.61.0-http.json", (triton.NATIVE,), id="its own"),
        pytest.param(
            *("triton-2.61.0-decoupled-http.json", (triton.NATIVE, triton.DECOUPLED)),
            id="its own, decoupled",
        ),
    ],
)
async def test_every_answer_is_tritons(name: str, options: tuple[tuple[str, str], ...]) -> None:
    rows = surface.read(FOLDER / name)
    report = await surface.check(rows, EngineType.TRITON, options)
    assert (list(report.differences), report.equal) == ([], len(rows))
