"""Gauges out of the text that engines expose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelserve.adapters import gauges
from modelserve.engines import types

VLLM = types.MetricNames(
    running=types.Series("vllm:num_requests_running"),
    waiting=types.Series("vllm:num_requests_waiting"),
    kv_usage=types.Series("vllm:kv_cache_usage_perc", before="vllm:gpu_cache_usage_perc"),
)
TRITON = types.MetricNames(
    running=types.Series("nv_trt_llm_request_metrics", (("request_type", "scheduled"),)),
    waiting=types.Series("nv_trt_llm_request_metrics", (("request_type", "waiting"),)),
)
# As vLLM 0.33 writes it, shortened.
VLLM_TEXT = b"""\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="llama-8b"} 3.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="llama-8b"} 2.0
# TYPE vllm:num_requests_waiting_by_reason gauge
vllm:num_requests_waiting_by_reason{engine="0",model_name="llama-8b",reason="capacity"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="llama-8b"} 0.25
"""


def text(waiting: str, running: str = "1") -> bytes:
    lines = f"vllm:num_requests_waiting {waiting}\nvllm:num_requests_running {running}\n"
    return lines.encode()


def test_the_three_figures_of_vllm() -> None:
    assert gauges.parse_queue(VLLM_TEXT, VLLM) == (2.0, 3.0, 0.25)


def test_counts_are_summed_over_ranks_and_use_is_their_mean() -> None:
    second = VLLM_TEXT.replace(b'engine="0"', b'engine="1"').replace(b"0.25", b"0.75")
    assert gauges.parse_queue(VLLM_TEXT + second, VLLM) == (4.0, 6.0, 0.5)


def test_series_are_told_apart_by_their_labels() -> None:
    body = (
        b'nv_trt_llm_request_metrics{model="m",request_type="waiting",version="1"} 7\n'
        b'nv_trt_llm_request_metrics{model="m",request_type="scheduled",version="1"} 4\n'
        b'nv_trt_llm_request_metrics{model="m",not_request_type="waiting"} 100\n'
    )
    assert gauges.parse_queue(body, TRITON) == (7.0, 4.0, 0.0)


LAZY = types.MetricNames(types.Series("running"), types.Series("waiting"), from_first_use=True)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"", (0.0, 0.0, 0.0)),
        (b"# TYPE waiting gauge\nwaiting 3\n\n", (3.0, 0.0, 0.0)),
        (b"<html>", None),
    ],
    ids=["nothing used yet", "one used", "a page"],
)
def test_series_that_come_with_first_use_are_zero_before(
    body: bytes, found: tuple[float, float, float] | None
) -> None:
    assert gauges.parse_queue(body, LAZY) == found


def test_braces_in_a_label_and_a_time_stamp_do_no_harm() -> None:
    body = (
        b'vllm:num_requests_waiting{model_name="a} 9"} 2 1700000000000\n'
        b"vllm:num_requests_running  3 1700000000000\r\n"
    )
    assert gauges.parse_queue(body, VLLM) == (2.0, 3.0, 0.0)


@pytest.mark.parametrize("bad", ["NaN", "+Inf", "-Inf", "-1", "1e300", "1000001", "much", ""])
def test_an_unusable_figure_is_no_signal(bad: str) -> None:
    assert gauges.parse_queue(text(bad), VLLM) is None
    assert gauges.parse_queue(text("1", bad), VLLM) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><body>502 Bad Gateway</body></html>",
        b'{"error": "x"}',
        b"\xff\xfe\x00",
        text("1")[:28],
    ],
    ids=["empty", "a page", "JSON", "binary", "cut short"],
)
def test_something_else_is_no_signal(body: bytes) -> None:
    assert gauges.parse_queue(body, VLLM) is None


def test_an_absurd_use_of_the_cache_does_not_spoil_the_counts() -> None:
    body = VLLM_TEXT.replace(b"0.25", b"NaN")
    assert gauges.parse_queue(body, VLLM) == (2.0, 3.0, 0.0)


@given(st.binary(max_size=300))
def test_no_bytes_make_it_fail(noise: bytes) -> None:
    assert gauges.parse_queue(noise, VLLM) is None
    found = gauges.parse_queue(VLLM_TEXT[:-100] + noise, VLLM)
    assert found is None or min(found) >= 0


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_any_count_that_an_engine_can_have_is_read_back(waiting: int, running: int) -> None:
    body = text(f"{float(waiting)!r}", str(running))
    assert gauges.parse_queue(body, VLLM) == (waiting, running, 0.0)


def test_an_earlier_versions_name_will_do() -> None:
    body = VLLM_TEXT.replace(b"vllm:kv_cache_usage_perc", b"vllm:gpu_cache_usage_perc")
    assert gauges.parse_queue(body, VLLM) == (2.0, 3.0, 0.25)
