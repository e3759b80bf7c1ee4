"""The time that a log line gets when it is written."""

import pytest

from servelab.engine import stamps

AT_UNIX_S = 1796066088.123456


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ("%Y-%m-%dT%H:%M:%S.%fZ", "2026-11-30T19:14:48.123456Z"),
        ("%m%d %H:%M:%S.%f", "1130 19:14:48.123456"),
        ("%H:%M:%S.%L", "19:14:48.123"),
        ("%H:%M:%S", "19:14:48"),
    ],
)
def test_a_mark_gets_the_time_in_its_form(form: str, told: str) -> None:
    assert stamps.stamped(f"a {stamps.mark(form)} b", AT_UNIX_S) == f"a {told} b"


def test_lines_of_one_second_tell_their_own_part_of_it() -> None:
    line = stamps.mark("%S.%f")
    assert [stamps.stamped(line, AT_UNIX_S + part) for part in (0, 0.5)] == [
        "48.123456",
        "48.623456",
    ]


def test_a_line_without_marks_stays_as_it_is() -> None:
    assert stamps.stamped("100%f", AT_UNIX_S) == "100%f"
