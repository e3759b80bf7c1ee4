"""TensorRT-LLM's capacity rule GUARANTEED_NO_EVICT: who starts is never stopped.

A request starts only if there are blocks for all tokens it may get, beside those that the running
ones may still take. Else it is as with vLLM, but for prompts, which are not divided by default.
"""

from servelab.engine.core.schedule import VllmScheduler
from servelab.engine.core.sequences import Sequence


class NoEvictScheduler(VllmScheduler):
    """TensorRT-LLM's default rules."""

    _reserves = True

    def _fits(self, sequence: Sequence, in_use: int, budget: int) -> bool:
        """Whether there are blocks for it to its end, however long the others go on."""
        batch = self._batch
        free = batch.pool.size + batch.pool.shared - batch.set_aside
        return self._set_aside(sequence) - in_use <= free

    def _set_aside(self, sequence: Sequence) -> int:
        """Blocks of a sequence that gets all it may; the last token needs no place."""
        config = self._config
        tokens = min(sequence.prompt_tokens + sequence.allowed, config.max_model_tokens) - 1
        return min(config.blocks_for(tokens), config.kv_blocks)
