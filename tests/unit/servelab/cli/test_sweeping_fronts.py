"""``servelab sweep --fronts``: every policy at its best, and whose front crosses the first."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from servelab.cli import main

SCENARIO = """\
pools: [{gpu: NVIDIA-H100-80GB-HBM3}]
models:
  - name: small
    spec:
      model: {name: meta-llama/Llama-3.1-8B-Instruct}
      gpu: {product: NVIDIA-H100-80GB-HBM3}
      scaling: {maxReplicas: 2}
    traffic:
      - gamma: {perSecond: 2, cv: 3, seconds: 60}
        output: {median: 100, p95: 400}
tailSeconds: 200
gpuHourPrice: 2
"""
FEW = ("--fronts", "--policies", "committed,hpa,fixed-N,oracle", "--workers", "1")

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    return str(path)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ("sweep", *arguments))


def test_json_has_each_policys_front_and_who_crosses_the_first(scenario: str) -> None:
    found = json.loads(call(scenario, *FEW, "-o", "json").stdout)
    # Two floors of 42 and of seven presets, two counts, one oracle.
    assert (found["runs"], found["settings"], found["seeds"]) == (84 + 14 + 2 + 1,) * 2 + (1,)
    fronts = {each["policy"]: each for each in found["fronts"]}
    assert list(fronts) == ["committed", "hpa", "fixed-N", "oracle"]
    assert [each["bound"] for each in fronts.values()] == [False, False, False, True]
    ahead = {n for n, e in fronts.items() if any(p["ahead"] for p in e["points"])} - {"oracle"}
    assert (found["judged"], set(found["crossed_by"])) == ("committed", ahead)
    for front in fronts.values():
        waits_s = [point["ttft_p95_s"] for point in front["points"]]
        assert waits_s == sorted(waits_s, reverse=True)


def test_people_get_a_row_for_each_point_with_its_settings(scenario: str) -> None:
    said = call(scenario, *FEW).output
    assert "101 runs of 101 settings" in said
    assert "committed pays" in said
    assert "bufferReplicas 2" in said
    assert "oracle (bound)" in said


def test_the_page_draws_the_fronts_and_needs_no_network(scenario: str, tmp_path: Path) -> None:
    page = tmp_path / "fronts.html"
    assert call(scenario, *FEW, "--html", str(page)).exit_code == 0
    text = page.read_text()
    figure = text[text.index("<svg") : text.index("</svg>") + 6]
    drawn = [each.text for each in ElementTree.fromstring(figure).iter() if each.text]
    assert {"committed", "hpa", "fixed-N", "oracle"} <= set(drawn)
    assert any("minReplicas 0" in each for each in drawn)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_all_of_it_is_the_same_on_one_process_and_on_two(scenario: str, tmp_path: Path) -> None:
    written = []
    for workers in ("1", "2"):
        files = tmp_path / f"{workers}.csv", tmp_path / f"{workers}.html"
        words = (*FEW[:-1], workers, "--out", str(files[0]), "--html", str(files[1]), "-o", "json")
        said = call(scenario, *words).stdout
        written.append([said, *(each.read_bytes() for each in files)])
    assert written[0] == written[1]


def test_the_first_policy_is_the_one_that_is_judged(scenario: str) -> None:
    words = ("--fronts", "--policies", "fixed-2,fixed-1", "--workers", "1", "-o", "json")
    found = json.loads(call(scenario, *words).stdout)
    assert (found["judged"], found["crossed_by"]) == ("fixed-2", ["fixed-1"])


def test_who_serves_nothing_is_told_so(scenario: str) -> None:
    nobody = ("--set", "gateway.hold.maxRequests=0", "--policies", "hpa,committed")
    done = call(scenario, "--fronts", *nobody, "--floors", "0", "--workers", "1")
    assert done.exit_code == 0
    assert "At no setting does hpa serve 95 %" in done.stdout


def test_a_field_that_is_set_is_the_same_for_all(scenario: str) -> None:
    words = ("--set", "scaling.maxReplicas=1", *FEW, "-o", "json")
    found = json.loads(call(scenario, *words).stdout)
    assert found["runs"] == 41 + 7 + 1 + 1  # no floor but none, one fixed count


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        pytest.param(["--html", "x.html"], "add --fronts", id="a page of no fronts"),
        pytest.param(["--fronts", "--html", "no/x.html"], "is no directory", id="folder"),
        pytest.param(["--fronts", "--policies", "hap"], "called 'hap'", id="policy"),
        pytest.param(["--fronts", "--floors", "0,few"], "numbers of replicas", id="floors"),
        pytest.param(["--fronts", "--floors", "-1"], "--floors -1: give", id="fewer than none"),
        pytest.param(["--floors", "1"], "add --fronts", id="floors of no fronts"),
        pytest.param(
            ["--fronts", "--policies", "fixed-N", "--floors", "0,9"],
            "no fixed count",
            id="nothing to run",
        ),
        pytest.param(["--policies", "fixed-N"], "called 'fixed-N'", id="a family as a policy"),
        pytest.param(
            ["--fronts", "--set", "stepJitter=0,0.1"], "give one value with --fronts", id="values"
        ),
    ],
)
def test_what_cannot_be_drawn_is_told_before_anything_runs(
    scenario: str, words: list[str], complaint: str
) -> None:
    done = call(scenario, *words)
    assert done.exit_code == 2
    assert complaint in " ".join(done.output.split())
