"""TensorRT-LLM's capacity rules: GUARANTEED_NO_EVICT, its default, and MAX_UTILIZATION.

By the first a request starts only if there are blocks for all tokens it may get, beside those that
the running ones may still take, so that who starts is never stopped. By the other it is as with
vLLM: the last that started is paused when blocks run out. If layers with windows have a pool of
their own, there must be room in that as well. Prompts are not divided by default.
"""

import bisect
from collections.abc import Iterable

from servelab.engine.core import schedule
from servelab.engine.core.batch import Batch
from servelab.engine.core.blocks import Block
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.plans import Plan
from servelab.engine.core.schedule import VllmScheduler
from servelab.engine.core.sequences import Sequence


class SecondPool:
    """The pool of layers with a window: of none more than a window's blocks of each sequence."""

    __slots__ = ("_config", "_most", "_size")

    def __init__(self, config: CoreConfig, window: int, tokens: int) -> None:
        self._config = config
        self._most = config.blocks_for(window) + 1  # a window may begin inside a block
        self._size = tokens // config.block_size

    def left(self, blocks: Iterable[int]) -> int:
        """Blocks that are left beside sequences with so many in the first pool each."""
        return self._size - sum(min(each, self._most) for each in blocks)

    def left_after(self, tokens: Iterable[int], more: int = 0) -> int:
        """The same beside sequences of so many tokens, once each has some more."""
        return self.left(self._config.blocks_for(each + more) for each in tokens)

    @staticmethod
    def of(config: CoreConfig) -> "SecondPool | None":
        """Of an engine that has one."""
        return None if config.second_pool is None else SecondPool(config, *config.second_pool)


class NoEvictScheduler(VllmScheduler):
    """TensorRT-LLM's default rules."""

    _reserves = True

    def __init__(self, config: CoreConfig, batch: Batch) -> None:
        super().__init__(config, batch)
        self._second = SecondPool.of(config)

    def _fits(self, sequence: Sequence, found: list[Block], most_tokens: int) -> bool:
        """Whether there are blocks for it to its end, however long the others go on."""
        batch = self._batch
        free = batch.pool.size + batch.pool.shared - batch.set_aside
        blocks = self._set_aside(sequence)
        return blocks - schedule.in_use(found) <= free and self._fits_second(blocks)

    def _fits_second(self, blocks: int) -> bool:
        """Whether one that needs so many in the first pool fits the second, if there is one."""
        if self._second is None or not self._batch.running:
            return True
        held = [each.set_aside for each in self._batch.running.values()]
        return self._second.left([*held, blocks]) >= 0

    def _set_aside(self, sequence: Sequence) -> int:
        """Blocks of a sequence that gets all it may; the last token needs no place."""
        config = self._config
        tokens = min(sequence.prompt_tokens + sequence.allowed, config.max_model_tokens) - 1
        return min(config.blocks_for(tokens), config.kv_blocks)


class MaxUtilizationScheduler(VllmScheduler):
    """Packs as many as fit for now, and pauses the last that started."""

    def __init__(self, config: CoreConfig, batch: Batch) -> None:
        super().__init__(config, batch)
        self._second = SecondPool.of(config)

    def beats(self) -> int:
        """Steps from here on that are nothing but a beat, with blocks enough, if nobody starts."""
        steps, second = super().beats(), self._second
        if second is None or not steps or len(self._batch.running) == 1:
            return steps
        tokens = self._tokens()
        return bisect.bisect(range(steps), 0, key=lambda step: -second.left_after(tokens, step))

    def _all_served(self, plan: Plan, budget: int, most: int) -> bool:
        return self._has_second() and super()._all_served(plan, budget, most)

    def _lacks(self, blocks: int) -> bool:
        return super()._lacks(blocks) or not self._has_second()

    def _fits(self, sequence: Sequence, found: list[Block], most_tokens: int) -> bool:
        """Whether there are blocks in both pools to compute its prompt."""
        return super()._fits(sequence, found, most_tokens) and self._has_second(sequence.known)

    def _has_second(self, *more: int) -> bool:
        """Whether the second pool holds who runs after the next step, and more of such lengths.

        One alone is believed to fit.
        """
        if self._second is None or len(self._batch.running) + len(more) <= 1:
            return True
        return self._second.left_after((*self._tokens(), *more)) >= 0

    def _tokens(self) -> list[int]:
        """What those who run have computed after the next step."""
        decoding = self._batch.decoding
        return [
            decoding.computed(each) + 1 if each.counted else each.known
            for each in self._batch.running.values()
        ]
