"""The bytes of whole answers: most come out of a form that is made once."""

import json

import pytest

from servelab.engine.surfaces.vllm import chunks, wholes
from servelab.engine.surfaces.vllm.chunks import End, Head, Piece

ENDS = [End("length"), End("stop", 'a%s"é'), End("stop", 5)]


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("end", ENDS)
def test_an_answer_from_the_form_tells_what_was_put_in(chat: bool, end: End) -> None:
    head = Head('id%"\0', 7, 'mo%del"', chat)
    found = json.loads(wholes.bare(head, 'te"x%t\n é', end, 3, 4))
    choice = found["choices"][0]
    assert (found["id"], found["created"], found["model"]) == (head.id, 7, head.model)
    assert (choice["message"]["content"] if chat else choice["text"]) == 'te"x%t\n é'
    assert (choice["finish_reason"], choice["stop_reason"]) == end
    assert list(found["usage"].values())[:3] == [3, 7, 4]


@pytest.mark.parametrize("chat", [True, False])
def test_an_answer_from_the_form_has_the_fields_of_any_other(chat: bool) -> None:
    head, end = Head("id", 7, "m", chat), End("length")
    made = wholes.bare(head, "text", end, 3, 4)
    assert made == wholes.whole(head, [Piece("text", end)], chunks.usage(3, 4))


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.parametrize("fingerprint", [True, False])
@pytest.mark.parametrize("end", ENDS)
def test_events_from_forms_are_those_made_one_by_one(
    chat: bool, fingerprint: bool, end: End
) -> None:
    head = Head('id%"é', 7, 'mo%del"', chat, "ro%le")
    quick = chunks.ChoiceChunks(head, 3, fingerprint=fingerprint)
    plain = chunks.ChoiceEvents(head, 3, fingerprint=fingerprint)
    assert quick.role() == plain.role()
    assert quick.tokens([b"a%", b"b"]) == plain.piece(Piece("a%")) + plain.piece(Piece("b"))
    assert quick.last('te"x%', end) == plain.piece(Piece('te"x%', end))
