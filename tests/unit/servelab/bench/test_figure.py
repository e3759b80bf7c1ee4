"""Figures in the one shape that all benches share."""

import dataclasses
import json
import math
import os

import pytest

from modelserve import errors
from servelab.bench import figure, machine, registry

FIGURES = (
    figure.quantile("arrival_to_scale_write_p50", [0.01, 0.012, 0.09], 0.5, "s", 0.02),
    figure.Figure("requests_per_s", 900.0, "requests/s", "higher", 1000.0, 3),
    figure.Figure("rss_bytes", 81_400_000, "bytes"),
)
REPORT = figure.Report(
    "wake",
    {"cpu": "some CPU", "cores": 2, "memory_gib": 24},
    {"python": "3.11.7", "kubernetes": "1.37.2"},
    FIGURES,
)


def test_a_report_is_the_agreed_json() -> None:
    told = json.loads(json.dumps(REPORT.to_json()))
    assert list(told) == ["bench", "machine", "versions", "figures"]
    assert told["figures"][0] == {
        "name": "arrival_to_scale_write_p50",
        "value": 0.012,
        "unit": "s",
        "better": "lower",
        "goal": 0.02,
        "samples": 3,
    }


def rates(*values: float) -> list[figure.Figure]:
    return [figure.Figure("requests_per_s", value, "1/s", "higher") for value in values]


def test_of_several_runs_the_median_is_told_with_their_number_and_extremes() -> None:
    told = figure.median(rates(9.0, 20.0, 10.0)).to_json()
    assert (told["value"], told["runs"], told["lowest"], told["highest"]) == (10.0, 3, 9.0, 20.0)


def test_of_two_runs_the_worse_is_told() -> None:
    waits = [figure.Figure("wait", value, "s") for value in (2.0, 3.0)]
    assert (figure.median(waits).value, figure.median(rates(9.0, 10.0)).value) == (3.0, 9.0)


def test_a_single_run_is_told_as_it_is() -> None:
    assert figure.median(rates(9.0)) == rates(9.0)[0]


def test_a_median_is_shown_with_what_it_is_the_median_of() -> None:
    told = dataclasses.replace(REPORT, figures=[figure.median(rates(9.0, 20.0, 10.0))])
    assert "| 10 1/s (9 1/s to 20 1/s in 3 runs) | - |" in figure.as_markdown([told], "2026-01-02")
    assert figure.as_text(told).endswith("(9 1/s to 20 1/s in 3 runs)")


def test_goals_are_met_from_the_right_side() -> None:
    assert [one.met for one in FIGURES] == [True, False, None]


def test_no_samples_are_null_in_json_and_words_in_a_table() -> None:
    empty = figure.quantile("x", [], 0.5, "s", 1.0)
    assert math.isnan(empty.value)
    assert empty.to_json()["value"] is None
    assert figure.shown(empty.value, "s") == "no samples"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0127, "s", "12.7 ms"),
        (2.5, "s", "2.50 s"),
        (81.4e6, "bytes", "81.4 MB"),
        (0.05, "share", "5.0 %"),
        (0.00212, "cores", "0.00212 cores"),
    ],
)
def test_values_read_well(value: float, unit: str, text: str) -> None:
    assert figure.shown(value, unit) == text


def test_tables_show_goals_and_what_missed_them() -> None:
    text = figure.as_text(REPORT)
    assert "some CPU, 2 cores, 24 GiB memory; python 3.11.7, kubernetes 1.37.2" in text
    assert text.count("missed") == 1


def test_the_page_has_a_row_for_each_figure() -> None:
    page = figure.as_markdown([REPORT], "2026-01-02")
    assert "| arrival_to_scale_write_p50 | 12.0 ms | < 20.0 ms | 3 |" in page
    assert "| rss_bytes | 81.4 MB | - | 1 |" in page
    assert "2026-01-02, some CPU" in page


def test_a_page_keeps_all_but_the_sections_that_are_new() -> None:
    page = "# Ours\n\nBy hand.\n\n## core\n\nold core\n\n## wake\n\nold wake\n\n## nodes\n\nold\n"
    renewed = figure.as_markdown([REPORT], "2026-01-02", page)
    fresh = figure.as_markdown([REPORT], "2026-01-02").partition("## wake\n")[2]
    assert renewed == page.replace("\nold wake\n", fresh)
    assert figure.as_markdown([REPORT], "2026-01-02", renewed) == renewed


def test_a_bench_that_the_page_lacks_comes_last() -> None:
    page = figure.as_markdown([REPORT], "2026-01-02", "# Ours\n\n## core\n\nold core\n")
    assert page.startswith("# Ours\n\n## core\n\nold core\n\n## wake\n\n2026-01-02")


def test_an_unknown_bench_is_named() -> None:
    with pytest.raises(errors.UnknownName, match=r"unknown bench 'wak'.*wake"):
        registry.run("wak", None, lambda text: None)


def test_this_machine_describes_itself() -> None:
    told = machine.describe()
    assert told["cores"] >= 1
    assert told["cpu"]
    assert set(machine.versions()) == {"python", "engine", "kubernetes"}


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_usage_is_read_and_a_missing_process_is_a_sentence() -> None:
    assert machine.usage(os.getpid()).rss_bytes > 1_000_000
    with pytest.raises(errors.SetUpError, match="needs Linux"):
        machine.usage(2**22 + 1)
