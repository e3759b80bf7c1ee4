"""TensorRT-LLM's capacity rule GUARANTEED_NO_EVICT: who starts is never stopped.

A request starts only if there are blocks for all tokens it may get, beside those that the running
ones may still take: if layers with windows have a pool of their own, also there, of the window.
Else it is as with vLLM, but for prompts, which are not divided by default.
"""

from servelab.engine.core import schedule
from servelab.engine.core.blocks import Block
from servelab.engine.core.schedule import VllmScheduler
from servelab.engine.core.sequences import Sequence


class NoEvictScheduler(VllmScheduler):
    """TensorRT-LLM's default rules."""

    _reserves = True

    def _fits(self, sequence: Sequence, found: list[Block], most_tokens: int) -> bool:
        """Whether there are blocks for it to its end, however long the others go on."""
        batch = self._batch
        free = batch.pool.size + batch.pool.shared - batch.set_aside
        blocks = self._set_aside(sequence)
        return blocks - schedule.in_use(found) <= free and self._fits_second(blocks)

    def _fits_second(self, blocks: int) -> bool:
        """Whether one that needs so many in the first pool fits the second, if there is one."""
        config = self._config
        if config.second_pool is None:
            return True
        window, tokens = config.second_pool
        most = config.blocks_for(window) + 1  # a window may begin inside a block
        held = sum(min(each.set_aside, most) for each in self._batch.running.values())
        return not held or held + min(blocks, most) <= tokens // config.block_size

    def _set_aside(self, sequence: Sequence) -> int:
        """Blocks of a sequence that gets all it may; the last token needs no place."""
        config = self._config
        tokens = min(sequence.prompt_tokens + sequence.allowed, config.max_model_tokens) - 1
        return min(config.blocks_for(tokens), config.kv_blocks)
