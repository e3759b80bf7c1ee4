"""Counting decoding sequences against looking at each of them."""

from hypothesis import given
from hypothesis import strategies as st

from servelab.engine.core.decoding import Decoding
from servelab.engine.core.sequences import CoreRequest, Sequence

SIZE = 4
MEMBERS = st.lists(st.tuples(st.integers(1, 20), st.integers(2, 20)), min_size=1, max_size=8)


def member(name: str, prompt: int, limit: int) -> Sequence:
    """A sequence whose prompt is computed and whose first token is out."""
    sequence = Sequence(CoreRequest(name, prompt, limit), 0.0, limit)
    sequence.computed, sequence.known = prompt, prompt + 1
    return sequence


def decoding(sizes: list[tuple[int, int]]) -> tuple[Decoding, list[Sequence]]:
    members = [member(str(at), *size) for at, size in enumerate(sizes)]
    counted = Decoding(SIZE, listed=False)
    for sequence in members:
        counted.join(sequence)
    return counted, members


def blocks(tokens: int) -> int:
    return -(-tokens // SIZE)


@given(sizes=MEMBERS, steps=st.integers(0, 40))
def test_the_blocks_of_many_beats_are_the_sum_of_what_each_member_takes(
    sizes: list[tuple[int, int]], steps: int
) -> None:
    counted, _ = decoding(sizes)
    taken = sum(blocks(prompt + steps) - blocks(prompt) for prompt, _ in sizes)
    assert counted.blocks_needed(steps) == taken


@given(sizes=MEMBERS, steps=st.integers(0, 40), free=st.integers(0, 60))
def test_so_many_beats_fit_as_have_their_blocks(
    sizes: list[tuple[int, int]], steps: int, free: int
) -> None:
    counted, _ = decoding(sizes)
    fit = counted.steps_within(steps, free)
    assert counted.blocks_needed(fit) <= free
    assert fit == steps or counted.blocks_needed(fit + 1) > free


@given(sizes=MEMBERS)
def test_each_leaves_with_all_its_tokens_at_its_own_beat(sizes: list[tuple[int, int]]) -> None:
    counted, members = decoding(sizes)
    while counted.count:
        steps = counted.beats_to_end()
        for sequence in counted.beat(steps, 0.0):
            assert (sequence.output_tokens, counted.beats) == (sequence.limit, sequence.limit - 1)
    assert (counted.context, counted.blocks_needed(SIZE)) == (0, 0)
    assert all(not sequence.counted for sequence in members)


@given(sizes=MEMBERS, beats=st.integers(0, 1))
def test_one_that_leaves_early_has_the_tokens_of_the_beats_it_was_there(
    sizes: list[tuple[int, int]], beats: int
) -> None:
    counted, members = decoding([(prompt, limit + 2) for prompt, limit in sizes])
    counted.beat(beats, 1.5)
    counted.leave(members[0])
    prompt = sizes[0][0]
    assert (members[0].computed, members[0].known) == (prompt + beats, prompt + beats + 1)
    assert counted.context == sum(prompt + 1 + beats for prompt, _ in sizes[1:])
