"""Progress in plain lines."""

import io

import pytest

from servelab.cluster import reporting


def test_progress_without_a_terminal_is_a_line_with_percentage_and_estimate() -> None:
    stream = io.StringIO()
    reporting.Plain(stream).progress("building", 0.25, 300)
    assert stream.getvalue() == "building:  25%, about 5 min left\n"


def test_lines_do_not_follow_each_other_quickly() -> None:
    stream = io.StringIO()
    plain = reporting.Plain(stream, every_real_s=3600)
    for share in range(10):
        plain.progress("building", share / 10, None)
    assert stream.getvalue().count("\n") == 1


def test_a_stream_that_is_no_terminal_gets_lines() -> None:
    assert isinstance(reporting.for_stream(io.StringIO()), reporting.Plain)


def test_a_bar_leaves_nothing_behind_after_an_error() -> None:
    stream = io.StringIO()
    bar = reporting.Bar(stream)
    bar.progress("building", 0.5, 10)
    with pytest.raises(KeyError), reporting.closing(bar):
        raise KeyError
    left = stream.getvalue()
    bar.finish("building")
    assert stream.getvalue() == f"{left}building: done\n"
