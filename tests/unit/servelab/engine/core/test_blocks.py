"""The block pool: what is forgotten first, and that no block is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.engine.core import blocks
from servelab.engine.core.blocks import Block, BlockPool, Chain


def filled(*keys: int, size: int = 8) -> tuple[BlockPool, list[Block]]:
    """A pool with blocks of these keys, in use."""
    pool = BlockPool(size)
    pool.take(len(keys))
    return pool, [pool.add(key) for key in keys]


def test_a_block_that_was_given_back_is_still_found() -> None:
    pool, kept = filled(1, 2)
    pool.give_back(0, kept)
    assert (pool.free, pool.find([1, 2, 3])) == (8, kept)


def test_blocks_without_a_key_are_taken_before_those_with_one() -> None:
    pool, kept = filled(1, 2)
    pool.give_back(0, kept)
    pool.take(6)
    assert pool.find([1, 2]) == kept


def test_the_end_of_a_sequence_is_forgotten_before_its_beginning() -> None:
    pool, kept = filled(1, 2)
    pool.give_back(0, kept)
    pool.take(7)
    assert pool.find([1, 2]) == kept[:1]


def test_a_block_in_use_again_is_not_forgotten() -> None:
    pool, kept = filled(1, 2)
    pool.give_back(0, kept)
    pool.use(kept[1:])
    pool.take(7)
    assert (pool.free, pool.find([1]), pool.find([2])) == (0, [], kept[1:])


def test_a_shared_block_is_free_when_its_last_user_gives_it_back() -> None:
    pool, kept = filled(1)
    pool.use(kept)
    pool.give_back(0, kept)
    assert pool.free == 7
    pool.give_back(0, kept)
    assert pool.free == 8


def test_of_equal_blocks_the_first_is_found_and_then_the_other() -> None:
    pool, kept = filled(1, 1, size=2)
    assert pool.find([1]) == kept[:1]
    pool.give_back(0, kept[:1])
    pool.take(1)
    assert pool.find([1]) == kept[1:]


def test_users_beside_the_first_are_counted() -> None:
    pool, kept = filled(1, 2)
    pool.use(kept[:1])
    assert pool.shared == 1
    pool.give_back(0, kept)
    assert pool.shared == 0


def test_a_chain_is_forgotten_from_its_end_and_what_is_left_can_be_used_again() -> None:
    pool, chain = BlockPool(8), Chain(6)
    pool.take(6)
    pool.give_back_chain(chain)
    pool.take(4)
    assert (chain.count, pool.free) == (4, 4)
    pool.use_chain(chain)
    assert pool.free == 0


def test_of_a_chain_and_blocks_the_longest_unused_are_forgotten_first() -> None:
    pool, kept = filled(1, 2)
    chain = Chain(6)
    pool.take(6)
    pool.give_back(0, kept)
    pool.give_back_chain(chain)
    pool.take(3)
    assert (pool.find([1]), chain.count) == ([], 5)


@given(st.lists(st.integers(0, 3), max_size=64), st.integers(1, 16), st.integers(0, 64))
def test_keys_are_the_same_however_often_they_were_extended(
    tokens: list[int], size: int, part: int
) -> None:
    at_once: list[int] = []
    blocks.extend_keys(at_once, tokens, size)
    in_parts: list[int] = []
    cut = min(part, len(tokens)) // size * size
    blocks.extend_keys(in_parts, tokens[:cut], size)
    blocks.extend_keys(in_parts, tokens[cut:], size)
    assert at_once == in_parts
    assert len(at_once) == len(tokens) // size


@pytest.mark.parametrize("other", [[9, 2, 3, 4], [1, 2, 9, 4]])
def test_a_key_tells_of_all_tokens_before_it(other: list[int]) -> None:
    one: list[int] = []
    two: list[int] = []
    blocks.extend_keys(one, [1, 2, 3, 4], 2)
    blocks.extend_keys(two, other, 2)
    assert one[-1] != two[-1]
