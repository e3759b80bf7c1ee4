"""What TensorRT-LLM 1.3 tells of its steps (iterations) as JSON, each of them once."""

import collections
import datetime
from collections.abc import Sequence
from typing import Any, NamedTuple

from servelab.engine.assembly import EngineSpec
from servelab.engine.core.sequences import Output
from servelab.engine.metrics.exporting import Load

# Steps whose figures wait to be read (iter_stats_max_iterations).
MOST_STEPS = 1000


class Step(NamedTuple):
    """One step as it is told of. ``blocks`` of the KV cache were in use at its end."""

    number: int
    at_s: float
    latency_s: float
    scheduled: int
    contexts: int
    context_tokens: int
    completed: int
    running: int
    waiting: int
    blocks: int
    looked_up: int
    found: int


IDLE = Step(*[0] * len(Step._fields))


class Steps:
    """Figures of the last steps, for who reads them first."""

    def __init__(self, spec: EngineSpec) -> None:
        self._config = spec.config
        self._steps: collections.deque[Step] = collections.deque(maxlen=MOST_STEPS)
        self._number = 0
        self._last_s = 0.0

    def observe(self, output: Output, load: Load) -> Sequence[Step]:
        """The steps of an output."""
        config = self._config
        blocks = round(load.kv_usage * config.kv_blocks)
        running, waiting = load.running, load.waiting
        looked_up, found = load.prefix_tokens
        last = len(output.times_s) - 1
        steps = []
        for place, at_s in enumerate(output.times_s):
            self._number += 1
            steps.append(
                Step(
                    self._number,
                    at_s,
                    max(0.0, at_s - self._last_s) if self._last_s else 0.0,
                    len(output.ids),
                    0 if place else len(output.firsts),
                    0 if place else output.prefill_tokens,
                    len(output.finished) if place == last else 0,
                    running,
                    waiting,
                    blocks,
                    looked_up,
                    found,
                )
            )
            self._last_s = at_s
        self._steps.extend(steps)
        return steps

    def drain(self, now_unix_s: float) -> list[dict[str, Any]]:
        """All that nobody has read yet."""
        told = [self._document(step, now_unix_s - self._last_s + step.at_s) for step in self._steps]
        self._steps.clear()
        return told

    def _document(self, step: Step, unix_s: float) -> dict[str, Any]:
        config = self._config
        stamp = datetime.datetime.fromtimestamp(unix_s, datetime.UTC)
        reused = step.found // config.block_size
        missed = (step.looked_up - step.found) // config.block_size
        return {
            "timestamp": stamp.strftime("%m-%d-%Y %H:%M:%S.%f"),
            "iter": step.number,
            "iterLatencyMS": step.latency_s * 1000,
            "newActiveRequestsQueueLatencyMS": 0.0,
            "numNewActiveRequests": step.contexts,
            "numActiveRequests": step.running,
            "numQueuedRequests": step.waiting,
            "numCompletedRequests": step.completed,
            "maxNumActiveRequests": config.max_sequences,
            "maxBatchSizeStatic": config.max_sequences,
            "maxBatchSizeTunerRecommended": 0,
            "maxBatchSizeRuntime": config.max_sequences,
            "maxNumTokensStatic": config.max_batched_tokens,
            "maxNumTokensTunerRecommended": 0,
            "maxNumTokensRuntime": config.max_batched_tokens,
            "kvCacheStats": {
                "maxNumBlocks": config.kv_blocks,
                "freeNumBlocks": config.kv_blocks - step.blocks,
                "usedNumBlocks": step.blocks,
                "tokensPerBlock": config.block_size,
                "reusedBlocks": reused,
                "missedBlocks": missed,
                "cacheHitRate": step.found / step.looked_up if step.looked_up else 0.0,
            },
            "inflightBatchingStats": {
                "numScheduledRequests": step.scheduled,
                "numContextRequests": step.contexts,
                "numGenRequests": step.scheduled - step.contexts,
                "numPausedRequests": 0,
                "numCtxTokens": step.context_tokens,
                "microBatchId": 0,
                "avgNumDecodedTokensPerIter": 1.0,
            },
        }
