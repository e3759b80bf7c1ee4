"""When a pod's life goes on."""

import asyncio

from modelserve import testing
from servelab.node.pods import turns


class Life:
    """Notes its turns; ``due_s`` is when it wants the next."""

    def __init__(self) -> None:
        self.now_s, self.due_s = 100.0, turns.NEVER
        self.taken = 0
        self.failures: list[Exception] = []
        self.turns = turns.Turns(self.turn, lambda: self.now_s, self.failures.append)

    def turn(self) -> float:
        self.taken += 1
        return self.due_s


async def test_nothing_is_called_before_the_beginning_or_after_the_end() -> None:
    life = Life()
    life.turns.soon()
    await testing.settle()
    assert life.taken == 0
    life.turns.begin()
    life.turns.end()
    life.turns.soon()
    await testing.settle()
    assert life.taken == 0


async def test_what_happens_several_times_is_one_turn() -> None:
    life = Life()
    life.turns.begin()
    life.turns.soon()
    life.turns.soon()
    await testing.settle()
    assert life.taken == 1


async def test_a_turn_comes_by_itself_when_it_is_due() -> None:
    life = Life()
    life.due_s = 99.0
    life.turns.begin()
    await asyncio.sleep(0)
    life.due_s = turns.NEVER
    await asyncio.sleep(0.001)
    await testing.settle()
    assert life.taken == 2


async def test_a_turn_that_fails_is_told_and_is_the_last() -> None:
    life = Life()
    life.turns = turns.Turns(lambda: 1 // 0, lambda: 0.0, life.failures.append)
    life.turns.begin()
    await testing.settle()
    life.turns.soon()
    await testing.settle()
    assert [type(each) for each in life.failures] == [ZeroDivisionError]
