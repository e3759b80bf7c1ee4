"""The tokens of a conversation, place by place."""

from hypothesis import given
from hypothesis import strategies as st

from servelab.engine.text import vocabulary
from servelab.engine.text.transcript import Transcript


@given(st.integers(0, 12), st.integers(0, 12))
def test_the_answer_follows_the_prompt(first: int, count: int) -> None:
    answer = vocabulary.Answer(1)
    whole = [7, 8, 9, 7, 8, *vocabulary.encode(answer.text(30))]
    transcript = Transcript(lambda: [7, 8, 9, 7, 8], answer)
    assert transcript.ids(first, count) == whole[first : first + count]


def test_the_next_turn_of_a_chat_begins_with_the_whole_one_before() -> None:
    answer = vocabulary.Answer(5)
    asked = Transcript(lambda: vocabulary.encode_chat(["Tell me"]), answer)
    length = len(vocabulary.encode_chat(["Tell me"])) + 20
    again = vocabulary.encode_chat(["Tell me", answer.text(20), "More"])
    assert again[:length] == asked.ids(0, length)
