"""Traces are read by column name, and a bad row is named by its line."""

import pytest

from modelserve import errors
from servelab.workload import arrivals, tracefile

OWN = "arrival_s,input_tokens,output_tokens\n0.5,10,3\n2.0,20,4\n"
AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"
)


@pytest.mark.parametrize(
    ("text", "second"),
    [
        pytest.param(OWN, arrivals.Arrival(1.5, 20, 4), id="own"),
        pytest.param(AZURE, arrivals.Arrival(4.314579, 396, 109), id="azure"),
    ],
)
def test_time_counts_from_the_first_row(text: str, second: arrivals.Arrival) -> None:
    first, other = tracefile.read(text.splitlines())
    assert first.at_s == 0.0
    assert other.at_s == pytest.approx(second.at_s, abs=1e-6)
    assert (other.input_tokens, other.output_tokens) == (second.input_tokens, second.output_tokens)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("a,b\n1,2\n", "needs the columns", id="unknown layout"),
        pytest.param("", "needs the columns", id="empty"),
        pytest.param(OWN + "x,1,2\n", "line 4", id="no number"),
        pytest.param(OWN + "1.0,1,2\n", "goes back in time", id="unsorted"),
        pytest.param(OWN + "3.0,-1,2\n", "negative", id="negative"),
        pytest.param(OWN + "3.0\n", "line 4", id="short row"),
    ],
)
def test_a_bad_trace_is_refused_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(errors.InputError, match=complaint):
        list(tracefile.read(text.splitlines(), "x.csv"))


def test_the_shipped_trace_is_the_published_one() -> None:
    summary = arrivals.summarise(list(arrivals.window(tracefile.shipped(), 600)))
    assert summary.requests == 2867
    assert summary.mean_output_tokens == pytest.approx(260.3, abs=0.1)


def test_prompts_are_cut_so_that_prompt_and_answer_fit() -> None:
    (cut,) = arrivals.limited([arrivals.Arrival(0.0, 9000, 500)], 8192)
    assert (cut.input_tokens, cut.output_tokens) == (7692, 500)


def test_an_empty_workload_has_a_summary() -> None:
    assert arrivals.summarise([]).requests == 0
