"""The tokens of a conversation, place by place."""

from hypothesis import given
from hypothesis import strategies as st

from servelab.engine.text import answers, encoding, template
from servelab.engine.text.transcript import Transcript


@given(st.integers(0, 12), st.integers(0, 12))
def test_the_answer_follows_the_prompt(first: int, count: int) -> None:
    answer = answers.Words(1)
    whole = [7, 8, 9, 7, 8, *encoding.encode(answer.text(30))]
    transcript = Transcript(lambda: [7, 8, 9, 7, 8], answer)
    assert transcript.ids(first, count) == whole[first : first + count]


def test_the_next_turn_of_a_chat_begins_with_the_whole_one_before() -> None:
    answer = answers.Words(5)
    turns = [template.Message("user", "Tell me")]
    asked = Transcript(lambda: template.encode(turns), answer)
    length = len(template.encode(turns)) + 20
    turns += [template.Message("assistant", answer.text(20)), template.Message("user", "More")]
    assert template.encode(turns)[:length] == asked.ids(0, length)
