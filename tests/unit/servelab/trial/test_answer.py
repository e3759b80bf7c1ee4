"""An answer counts only if all of it came."""

import re

import pytest

from servelab.trial import answer

TOKEN = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}\n\n'
WHOLE = b": waiting\n\n" + 3 * TOKEN + USAGE + answer.DONE


def incoming(content: bytes, size: int = 7, status: int = 200) -> answer.Incoming:
    taken = answer.Incoming()
    taken.status = status
    for at in range(0, len(content), size):
        taken.feed(content[at : at + size], 1.0 + at)
    return taken


@pytest.mark.parametrize("size", [1, 5, 6, 7, 1000])
def test_events_are_counted_wherever_the_stream_is_cut(size: int) -> None:
    assert incoming(WHOLE, size).events == 5


def test_a_whole_answer_has_no_problem() -> None:
    assert incoming(WHOLE).problem(2) == ""


def test_keep_alive_comments_are_no_first_event() -> None:
    taken = answer.Incoming()
    taken.feed(b": held\n\n", 1.0)
    taken.feed(TOKEN, 2.0)
    assert taken.first_real_s == 2.0


ERROR = b'data: {"error": {"message": "engine lost", "type": "server_error"}}\n\n'


@pytest.mark.parametrize(
    ("content", "status", "asked", "complaint"),
    [
        pytest.param(ERROR[6:], 503, 2, "status 503: engine lost", id="status"),
        pytest.param(b"", 502, 2, "status 502: it said nothing", id="empty"),
        pytest.param(TOKEN + ERROR, 200, 2, r"without \[DONE\]: engine lost", id="error event"),
        pytest.param(TOKEN, 200, 2, r"without \[DONE\]", id="cut"),
        pytest.param(WHOLE, 200, 3, "2 tokens where 3", id="too short"),
        pytest.param(TOKEN + USAGE + answer.DONE, 200, 2, "0 events", id="events missing"),
    ],
)
def test_anything_less_is_named(content: bytes, status: int, asked: int, complaint: str) -> None:
    assert re.search(complaint, incoming(content, status=status).problem(asked))
