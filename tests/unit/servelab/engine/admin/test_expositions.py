"""Counters set back in a metrics text."""

from servelab.engine.admin import expositions

TEXT = """\
# HELP running Requests.
# TYPE running gauge
running{model="m"} 3.0
# TYPE tokens_total counter
tokens_total{model="m"} 120.0
# TYPE tokens_created gauge
tokens_created{model="m"} 1000.5
# TYPE ttft histogram
ttft_bucket{le="0.1"} 4.0
ttft_bucket{le="+Inf"} 9.0
ttft_sum 2.5
ttft_count 9.0
"""
LATER = TEXT.replace(" 120.0", " 150.0").replace(" 9.0", " 11.0").replace(" 2.5", " 3.0")


def test_counters_and_histograms_start_from_zero_and_gauges_stay() -> None:
    base = expositions.baseline(TEXT, 2000.0)
    lines = expositions.rebased(TEXT, base).splitlines()
    assert [line.split(" ")[-1] for line in lines if not line.startswith("#")] == [
        *("3.0", "0.0", "2000.0", "0.0", "0.0", "0.0", "0.0"),
    ]


def test_what_came_since_is_counted() -> None:
    text = expositions.rebased(LATER, expositions.baseline(TEXT, 2000.0))
    assert 'tokens_total{model="m"} 30.0' in text
    assert 'ttft_bucket{le="+Inf"} 2.0' in text
    assert "ttft_sum 0.5" in text


def test_a_series_that_is_new_counts_whole() -> None:
    base = expositions.baseline("# TYPE a_total counter\n", 1.0)
    assert expositions.rebased("# TYPE a_total counter\na_total 7.0\n", base).endswith("7.0\n")


def test_the_rest_of_the_text_stays() -> None:
    text = expositions.rebased(TEXT, expositions.baseline(TEXT, 2000.0))
    comments = [line for line in TEXT.splitlines() if line.startswith("#")]
    assert [line for line in text.splitlines() if line.startswith("#")] == comments
