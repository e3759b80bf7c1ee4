"""JSON and events that several surfaces write in the same way."""

import json

from hypothesis import given
from hypothesis import strategies as st

from servelab.engine.surfaces import events


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_prebuilt_event_with_a_text_put_in_is_the_event_of_that_text(text: str) -> None:
    before, after = events.around(events.event({"content": events.MARK, "index": 0}))
    assert before + events.quoted(text) + after == events.event({"content": text, "index": 0})


def test_half_a_surrogate_pair_becomes_a_question_mark() -> None:
    assert json.loads(events.compact({"text": "a\ud800"})) == {"text": "a?"}
