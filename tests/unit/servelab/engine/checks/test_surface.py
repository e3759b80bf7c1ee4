"""The mock engine's answers against recorded ones of vLLM 0.33.0 (Apache-2.0), masked."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from modelserve.errors import InputError
from servelab.cli.surface_check import surface_check
from servelab.engine.checks import surface

GOLDEN = Path(__file__).parents[4] / "golden" / "surface"


@pytest.mark.parametrize("name", ["http", "rules-http", "random-http", "structures-http"])
async def test_every_recorded_answer_is_met(name: str) -> None:
    rows = surface.read(GOLDEN / f"vllm-0.33.0-{name}.json")
    report = await surface.check(rows)
    assert (list(report.differences), report.equal) == ([], len(rows))


def row(real: Any) -> dict[str, Any]:
    return {"name": "x", "status": 200, "response": {"json": real}}


def answer(ours: Any) -> dict[str, Any]:
    return {"status": 200, "response_headers": {}, "response": {"json": ours}}


@pytest.mark.parametrize(
    ("real", "ours"),
    [
        ("<n>", 5),
        ("<text>", "any"),
        ("<list>", [1, 2]),
        ("resp_<id>", "resp_12"),
        ({"a": None}, {"a": None}),
        ({"cached_tokens": 16}, {"cached_tokens": 0}),
        ({"cached_tokens": "<n>"}, {"cached_tokens": 0}),
        ({"cache_write_tokens": 16}, {"cache_write_tokens": 0}),
    ],
)
def test_what_varies_may_be_anything_of_its_kind(real: Any, ours: Any) -> None:
    assert surface.compare(row(real), answer(ours)) == []


@pytest.mark.parametrize(
    ("real", "ours", "where"),
    [
        ("<n>", "5", "response.json"),
        ("<text>", None, "response.json"),
        ({"a": None}, {}, "response.json.a"),
        ({}, {"a": None}, "response.json.a"),
        ({"a": "<id>"}, {}, "response.json.a"),
        ([1], [1, 2], "response.json.length"),
        ([{"a": 1}], [{"a": True}], "response.json[0].a"),
    ],
)
def test_a_difference_names_its_place(real: Any, ours: Any, where: str) -> None:
    assert [found.where for found in surface.compare(row(real), answer(ours))] == [where]


def test_the_command_fails_on_a_difference(tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    file.write_text(
        '[{"name": "h", "method": "GET", "path": "/health", "status": 500, "response": {}}]'
    )
    result = CliRunner().invoke(surface_check, [str(file), "--json"])
    assert (result.exit_code, '"equal": 0' in result.output) == (1, True)


@pytest.mark.parametrize("text", ["{", "{}", '[{"name": "x"}]', None])
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "x.json"
    if text is not None:
        file.write_text(text)
    assert CliRunner().invoke(surface_check, [str(file)]).exit_code == 2
    with pytest.raises(InputError):
        surface.read(file)
