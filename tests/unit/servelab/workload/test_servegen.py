"""ServeGen's clients are read window by window, idle ones included; mistakes have a line."""

import pytest

from modelserve import errors
from servelab.workload import generators, servegen, tracefile

HEAD = "model,client,window_start_s,rate_rps,cv,arrival_pattern,shape,scale\n"
ROWS = HEAD + "m,1,0,2,1,Gamma,1,1\nm,2,0,9,1,Gamma,1,1\nm,1,1800,4,2,Weibull,0.5,1\n"


def windows(text: str, client: str = "m/1", **given: float) -> list[generators.Window]:
    return list(servegen.windows(text.splitlines(), client, "x.csv", **given))


def test_windows_without_a_row_are_silent() -> None:
    assert [(each.length_s, each.per_s) for each in windows(ROWS)] == [
        (600, 2),
        (1200, 0),
        (600, 4),
    ]
    assert windows(ROWS)[-1].law is generators.GapLaw.WEIBULL


def test_a_part_may_be_taken_and_rates_scaled() -> None:
    found = windows(ROWS, from_s=1500, scale=0.5)
    assert [(each.length_s, each.per_s) for each in found] == [(300, 0), (600, 2)]


def test_a_part_may_begin_within_a_window() -> None:
    assert windows(ROWS, from_s=200)[0].length_s == 400


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("model,client\n", "line 1: has no column window_start_s", id="columns"),
        pytest.param(HEAD + "m,1,0,x,1,Gamma,1,1\n", "line 2: cannot be read", id="number"),
        pytest.param(HEAD + "m,1,0,1,1,Pareto,1,1\n", "line 2: .*Gamma and Weibull", id="law"),
        pytest.param(HEAD + "m,1,0,-1,1,Gamma,1,1\n", "line 2: .*negative", id="negative"),
        pytest.param(HEAD + "m,1,0,nan,1,Gamma,1,1\n", "line 2: .*negative", id="nan"),
        pytest.param(ROWS + "m,1,600,1,1,Gamma,1,1\n", "line 5: goes back", id="order"),
        pytest.param(
            HEAD + "m,2,0,1,1,Gamma,1,1\n", "unknown client 'm/1'; did you mean m/2", id="no"
        ),
    ],
)
def test_what_cannot_be_used_is_named_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(errors.InputError, match=complaint):
        windows(text)


def test_lengths_are_quantiles() -> None:
    text = "model,client,field,p50,p95\nm,1,input_tokens,10,20\nm,1,output_tokens,1,2\n"
    prompts, answers = servegen.lengths(text.splitlines(), "m/1", "x.csv")
    assert prompts.points == ((0.5, 10.0), (0.95, 20.0))
    assert answers.points == ((0.5, 1.0), (0.95, 2.0))


@pytest.mark.parametrize("quantiles", ["20,10", "x,1", "-1,2"])
def test_quantiles_rise(quantiles: str) -> None:
    text = f"model,client,field,p50,p95\nm,1,input_tokens,{quantiles}\n"
    with pytest.raises(errors.InputError, match=r"x.csv, line 2"):
        servegen.lengths(text.splitlines(), "m/1", "x.csv")


@pytest.mark.parametrize("client", ["m-small/7", "m-mid/29", "m-large/132", "deepseek-r1/17"])
def test_the_clients_that_come_along_have_windows_and_lengths(client: str) -> None:
    rates = servegen.windows(tracefile.packaged("servegen-clients"), client, "c")
    assert {each.per_s > 0 for each in rates} == {True, False}
    servegen.lengths(tracefile.packaged("servegen-lengths"), client, "l")
