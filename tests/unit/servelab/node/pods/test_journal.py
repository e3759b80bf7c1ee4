"""Logs of containers."""

from servelab.node.pods import journal


def log(*lines: str) -> journal.Journal:
    found = journal.Journal()
    for number, line in enumerate(lines):
        found.append(100.0 + number, line)
    return found


def texts(found: journal.Journal, **query: int) -> list[str]:
    return [line.text for line in journal.select(found.lines, journal.Query(**query))]  # type: ignore[arg-type]


def test_the_tail_is_the_newest_lines() -> None:
    assert texts(log("a", "b", "c"), tail_lines=2) == ["b", "c"]
    assert texts(log("a", "b", "c"), tail_lines=0) == []


def test_since_leaves_older_lines_out() -> None:
    assert texts(log("a", "b", "c"), since_s=101) == ["b", "c"]


def test_time_stamps_have_nanoseconds() -> None:
    line = journal.Line(1_800_000_000.25, "hello")
    assert line.render(timestamps=True) == "2027-01-15T08:00:00.250000000Z hello\n"
    assert line.render(timestamps=False) == "hello\n"


def test_bytes_are_cut_at_the_limit() -> None:
    assert b"".join(journal.cut([b"abc", b"def", b"ghi"], 4)) == b"abcd"
    assert b"".join(journal.cut([b"abc", b"def"], None)) == b"abcdef"


def test_a_restart_keeps_the_log_before() -> None:
    found = log("a")
    found.rotate()
    found.append(1.0, "b")
    assert [line.text for line in found.previous or ()] == ["a"]
    assert texts(found) == ["b"]


def test_followers_hear_lines_and_the_end() -> None:
    found, heard = log("a"), list[journal.Line | None]()
    stop = found.follow(heard.append)
    found.append(2.0, "b")
    found.end()
    stop()
    found.append(3.0, "c")
    assert [line.text if line else None for line in heard] == ["b", None]


def test_only_the_newest_lines_are_kept() -> None:
    found = log(*map(str, range(journal.MOST_LINES + 5)))
    assert found.lines[0].text == "5"
