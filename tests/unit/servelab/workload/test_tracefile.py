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
        pytest.param(OWN.replace("0.5", "-5"), "line 2: arrival_s is negative", id="before 0"),
        pytest.param(OWN + "3,1000000,2\n", "line 4: input_tokens is 1000000", id="a million"),
        pytest.param(OWN + "3,1," + "9" * 200_000, "line 4: is no CSV", id="a cell too long"),
        pytest.param(OWN.replace("input_tokens", "x"), "line 1: needs the columns", id="column"),
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


BURST = (
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,230,1317,Conversation log\n"
)
MOONCAKE = (
    '{"timestamp": 3000, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}\n'
    '{"timestamp": 6000, "input_length": 7322, "output_length": 490, "hash_ids": []}\n'
)


@pytest.mark.parametrize(
    ("text", "second"),
    [
        pytest.param(BURST, arrivals.Arrival(40.0, 1087, 230), id="burstgpt"),
        pytest.param(MOONCAKE, arrivals.Arrival(3.0, 7322, 490), id="mooncake"),
    ],
)
def test_other_layouts_are_told_by_their_columns(text: str, second: arrivals.Arrival) -> None:
    assert list(tracefile.read(text.splitlines(keepends=True)))[1] == second


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        pytest.param("{nonsense", "trace, line 3: no JSON object", id="no json"),
        pytest.param("[1]", "trace, line 3: no JSON object", id="no object"),
        pytest.param('{"timestamp": 9000}', "line 3: .* cannot be read", id="missing"),
        pytest.param('{"a":' * 100_000, "line 3: no JSON object", id="too deep"),
        pytest.param(
            '{"timestamp": 9000, "input_length": Infinity, "output_length": 1}', "line 3", id="inf"
        ),
        pytest.param(
            '{"timestamp": NaN, "input_length": 1, "output_length": 1}', "line 3", id="nan"
        ),
        pytest.param(
            '{"timestamp": true, "input_length": 1, "output_length": 1}',
            "cannot be read",
            id="truth",
        ),
        pytest.param('{"timestamp": 0, "input_length": 1, "output_length": 1}', "back", id="order"),
    ],
)
def test_a_bad_line_of_json_is_refused_with_its_place(line: str, complaint: str) -> None:
    with pytest.raises(errors.InputError, match=complaint):
        list(tracefile.read((MOONCAKE + line).splitlines(), "trace"))


@pytest.mark.parametrize(("name", "count"), [("azure-code", 8819), ("azure-conversation", 19366)])
def test_the_traces_that_come_along_are_whole(name: str, count: int) -> None:
    assert sum(1 for _ in tracefile.read(tracefile.packaged(name), name)) == count


def test_a_trace_is_read_no_further_than_needed() -> None:
    endless = (
        "arrival_s,input_tokens,output_tokens" if n == 0 else f"{n},1,1" for n in range(10**9)
    )
    assert next(tracefile.read(endless)).at_s == 0.0


def test_hours_of_silence_are_fine() -> None:
    assert [a.at_s for a in tracefile.read((OWN + "90000,1,1\n").splitlines())] == [0, 1.5, 89999.5]


def test_a_model_that_takes_a_million_tokens_gets_them() -> None:
    found = list(tracefile.read((OWN + "3,1000000,2\n").splitlines(), most_tokens=2_000_000))
    assert found[-1].input_tokens == 1_000_000


def test_a_byte_order_mark_is_no_part_of_the_first_column() -> None:
    assert len(list(tracefile.read(("\ufeff" + OWN).splitlines()))) == 2


def test_burstgpt_of_version_two_has_more_columns() -> None:
    head, *rows = BURST.splitlines()
    text = [head.replace("Timestamp,", "Timestamp,Session ID,Elapsed time,")]
    text += [row.replace(",", ",s,1.5,", 1) for row in rows]
    assert list(tracefile.read(text)) == list(tracefile.read(BURST.splitlines()))


def test_a_time_centuries_away_is_refused() -> None:
    with pytest.raises(errors.InputError, match="line 4: arrival_s is 1e300, centuries after"):
        list(tracefile.read((OWN + "1e300,1,1\n").splitlines(), "trace"))


def test_whole_numbers_with_a_point_are_counts() -> None:
    found = list(tracefile.read((OWN + "3,10.0,2.0\n").splitlines()))
    assert (found[-1].input_tokens, found[-1].output_tokens) == (10, 2)


@pytest.mark.parametrize("count", ["1.5", "true", "null", '"x"', "1e999"])
def test_what_is_no_count_of_tokens_is_refused_in_json_too(count: str) -> None:
    line = f'{{"timestamp": 9000, "input_length": {count}, "output_length": 1}}'
    with pytest.raises(errors.InputError, match=r"line 3: .* two token counts"):
        list(tracefile.read((MOONCAKE + line).splitlines(), "trace"))
