"""Blocks of layers with sliding windows: what tables give back, and what is found."""

import dataclasses
import random
from collections.abc import Sequence as Seq
from dataclasses import dataclass

import pytest

from modelserve.errors import InputError
from servelab.engine.core import intake
from servelab.engine.core.config import CoreConfig, Policy
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.core.sequences import CoreRequest
from servelab.engine.core.stepping import EngineCore

WINDOW = 32
HYBRID = CoreConfig(4, 64, 512, 200, tables=(WINDOW, WINDOW, None), prefix_caching=True)


@dataclass(frozen=True, slots=True)
class Same:
    """Every prompt is alike up to ``shared`` tokens."""

    shared: int
    own: int

    def ids(self, first: int, count: int) -> Seq[int]:
        return [0 if at < self.shared else self.own for at in range(first, first + count)]


def core(config: CoreConfig = HYBRID) -> EngineCore:
    return EngineCore(config, SteadyLaw(1.0), random.Random(0))


def blocks(engine: EngineCore) -> int:
    """In use."""
    return round(engine.kv_usage * engine.config.kv_blocks)


def test_a_windowed_table_holds_no_more_than_the_window_and_the_block_it_begins_in() -> None:
    engine = core()
    engine.submit(CoreRequest("a", 64, 200), 0.0)
    engine.advance(150.0)  # 149 tokens are decoded, and one more is under way
    full, windowed = -(-214 // 16), WINDOW // 16 + 1
    assert full + 2 * (windowed - 1) <= blocks(engine) <= full + 2 * windowed


def test_all_blocks_come_back_when_a_sequence_ends() -> None:
    engine = core()
    engine.submit(CoreRequest("a", 100, 100), 0.0)
    engine.advance(1e6)
    assert (engine.idle, engine.kv_usage) == (True, 0.0)


def test_the_same_prompt_again_finds_the_end_of_its_window_and_all_of_the_full_table() -> None:
    engine = core()
    for at, name in enumerate(("a", "b")):
        engine.submit(CoreRequest(name, 100, 2, tokens=Same(100, at)), 100.0 * at)
        engine.advance(100.0 * at + 50)
    assert engine.prefix_tokens == (200, 96)


def test_a_prompt_that_leaves_another_where_no_window_was_kept_is_computed_from_there() -> None:
    engine = core()
    for at, name in enumerate(("a", "b", "c")):
        engine.submit(CoreRequest(name, 100, 2, tokens=Same(64, at)), 100.0 * at)
        engine.advance(100.0 * at + 50)
    # The second finds nothing in the windowed tables, which then keep what the third needs.
    assert engine.prefix_tokens == (300, 64)


def test_the_longest_request_is_one_whose_windows_fit() -> None:
    small = dataclasses.replace(HYBRID, kv_blocks=30, max_batched_tokens=16)
    longest = next(size for size in range(512, 0, -1) if small.blocks_held(size) <= 30)
    assert intake.Intake(small).limit(CoreRequest("a", longest - 1, 2)) == 2
    with pytest.raises(intake.TooLarge):
        intake.Intake(small).limit(CoreRequest("a", longest, 2))


@pytest.mark.parametrize("tables", [(), (8, 16), (0,)])
def test_tables_have_one_window(tables: tuple[int | None, ...]) -> None:
    with pytest.raises(InputError, match="one sliding window at most"):
        dataclasses.replace(HYBRID, tables=tables)


def test_tables_are_vllms() -> None:
    with pytest.raises(InputError, match="policy sglang"):
        dataclasses.replace(HYBRID, policy=Policy.SGLANG)
