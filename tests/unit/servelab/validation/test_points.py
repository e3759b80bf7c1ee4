"""Reading measured points."""

import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml

from modelserve.errors import InputError
from servelab.validation import points, scoring


def rows() -> list[dict[str, Any]]:
    """The entries of the package's file."""
    text = resources.files("servelab.validation").joinpath("points.yaml").read_text("utf-8")
    found: list[dict[str, Any]] = yaml.safe_load(text)["points"]
    return found


def test_the_points_of_the_package_have_names_of_their_own() -> None:
    found = points.read()
    assert len(found) == 298
    assert len({point.id for point in found}) == 298


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("points: 3", "no list `points`", id="no-list"),
        pytest.param("- a", "no list `points`", id="list-at-the-top"),
        pytest.param("points: [{id: a}]", "point 1 must be a mapping", id="no-kind"),
        pytest.param("a: [", "cannot read measured points", id="no-yaml"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=sentence) as caught:
        points.read(file)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        ({"tp": "x"}, "`tp` is 'x'; it must be a number from 0 on"),
        ({"load": 3}, "`load` is 3; it must be a mapping"),
        ({"input": -1, "output": []}, "`input` is -1; .*; `output` is"),
        ({"input": float("inf")}, "`input` is inf"),
        ({"output": 10**9}, "requests are longer than 4000000 tokens"),
        ({"load": {"concurrency": 10**9}}, "load.concurrency is 1000000000, more than 10000"),
        ({"metrics": {"tpot_ms": float("nan")}}, "has no tpot_ms"),
        ({"gpu": "h9000"}, "unknown GPU 'h9000'"),
        ({"model": ["x"]}, "unknown model"),
        ({"engine": "frobserve 9"}, "engine 'frobserve 9' is not emulated"),
        ({"kind": "latency_b7"}, "kind latency_b7 is not about a running engine"),
    ],
)
def test_a_point_that_cannot_be_run_is_skipped_with_the_reason(
    field: dict[str, object], sentence: str
) -> None:
    good = next(point for point in rows() if point["kind"] == "loaded")
    report = scoring.run(points.parse({"points": [good | field]}, "mine.yaml"))
    (skipped,) = report.skipped
    assert re.match(sentence, skipped.why)


def test_lengths_that_are_means_are_rounded() -> None:
    row = {"id": "a", "kind": "loaded", "input": 280.4}
    assert points.parse({"points": [row]}, "mine.yaml")[0].input_tokens == 280


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read measured points"):
        points.read(tmp_path / "none.yaml")
