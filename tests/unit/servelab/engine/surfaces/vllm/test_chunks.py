"""The bytes of whole answers: most come out of a form that is made once."""

import json

import pytest

from servelab.engine.surfaces.vllm import chunks
from servelab.engine.surfaces.vllm.chunks import End, Head, Piece

ENDS = [None, End("length"), End("stop", 'a%s"é'), End("stop", 5)]


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("end", ENDS)
def test_an_answer_from_the_form_tells_what_was_put_in(chat: bool, end: End | None) -> None:
    head = Head('id%"\0', 7, 'mo%del"', chat)
    found = json.loads(chunks.whole(head, [Piece('te"x%t\n é', end)], chunks.usage(3, 4)))
    choice = found["choices"][0]
    assert (found["id"], found["created"], found["model"]) == (head.id, 7, head.model)
    assert (choice["message"]["content"] if chat else choice["text"]) == 'te"x%t\n é'
    assert choice["finish_reason"] == (end and end.reason)
    assert choice["stop_reason"] == (end and end.stop_reason)
    assert list(found["usage"].values())[:3] == [3, 7, 4]


@pytest.mark.parametrize("chat", [True, False])
def test_an_answer_from_the_form_has_the_fields_of_any_other(chat: bool) -> None:
    head, counts = Head("id", 7, "m", chat), chunks.usage(3, 4)
    piece = Piece("text", End("length"))
    plain = json.loads(chunks.whole(head, [piece], counts))
    double = json.loads(chunks.whole(head, [piece, piece], counts))
    assert plain | {"choices": 2 * plain["choices"]} == double | {
        "choices": [each | {"index": 0} for each in double["choices"]]
    }
    assert list(plain) == list(double)
