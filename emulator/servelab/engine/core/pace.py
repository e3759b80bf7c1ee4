"""How long steps take: the law's seconds for what a step computes, times a seeded jitter."""

import bisect
import itertools
import math
import random
from collections.abc import Callable

from modelserve.api.spec import BatchingMode
from servelab.engine.core.batch import Batch
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.laws import DecodeTerms, StepLaw
from servelab.engine.core.plans import Plan


class Pace:
    """The durations of one engine's steps."""

    def __init__(self, config: CoreConfig, law: StepLaw, rng: random.Random, batch: Batch) -> None:
        self._law = law
        self._jitter = config.jitter
        self._rng = rng
        self._lag = config.lag
        self._batch = batch
        self._static = config.batching == BatchingMode.STATIC
        self._batch_size = 0  # of a static batch
        self._drawn_s: float | None = None  # of a step that did not fit into a row
        self._ask: Callable[[int], DecodeTerms | None]
        self._ask = getattr(law, "decode_terms", lambda _: None)
        self._terms: dict[int, DecodeTerms | None] = {}
        getattr(law, "on_change", lambda _: None)(self._terms.clear)

    def start(self) -> None:
        """A step begins on an empty batch."""
        self._batch_size = 0

    def step_s(self, plan: Plan) -> tuple[float, int]:
        """Seconds of a planned step, and the prompt tokens computed in it."""
        decoding = self._batch.decoding
        decodes, context = (decoding.count, decoding.context) if plan.beat else (0, 0)
        for ghost in plan.wasted:
            decodes += 1
            context += ghost.known
        prefill = prefill_context = prompts = 0
        for sequence, tokens in plan.parts:
            if tokens == 1 and sequence.decoding:
                decodes += 1
                context += sequence.known
            else:
                prefill += tokens
                prefill_context += sequence.computed
                prompts += 1
        if self._static:
            self._batch_size = max(self._batch_size, len(self._batch.running))
            decodes = self._padded(decodes, prompts)
        if self._drawn_s is not None:
            duration_s, self._drawn_s = self._drawn_s, None
            return duration_s, prefill
        if prompts:
            duration_s = self._law.step_s(decodes, context, prefill, prefill_context, prompts)
        else:
            duration_s = self._decode_s(decodes, context)
        return (duration_s * self._factor() if self._jitter > 0 else duration_s), prefill

    def ends_s(self, steps: int, start_s: float, before_s: float, until_s: float) -> list[float]:
        """When that many beats in a row end, as far as they are decided before the one moment and
        end until the other. The first one is.
        """
        decoding = self._batch.decoding
        more = decoding.count
        sequences, context = self._padded(more, 0), decoding.context
        if self._jitter > 0:
            return self._drawn_ends_s(steps, start_s, before_s, until_s)
        first_s = self._decode_s(sequences, context)
        if steps == 1:
            end_s = start_s + first_s
            return [end_s] if end_s <= until_s else []
        room_s = until_s - start_s
        if first_s > room_s:
            return []
        if first_s * steps > room_s:
            steps = min(steps, int(room_s / first_s) + 1)
        steps_s = self._steps_s(sequences, range(context, context + more * steps, more))
        ends_s = list(itertools.accumulate(steps_s, initial=start_s))
        if ends_s[-1] > until_s:
            del ends_s[bisect.bisect_right(ends_s, until_s) :]
        if ends_s[-1] >= before_s:
            del ends_s[bisect.bisect_left(ends_s, before_s) + 1 + self._lag :]
        del ends_s[0]
        return ends_s

    def _drawn_ends_s(
        self, steps: int, start_s: float, before_s: float, until_s: float
    ) -> list[float]:
        """The same where each step has its own draw. One that ends too late is drawn but once."""
        decoding = self._batch.decoding
        more = decoding.count
        sequences, context = self._padded(more, 0), decoding.context
        ends_s: list[float] = []
        end_s = decided_s = start_s
        while len(ends_s) < steps and (decided_s < before_s or not ends_s) and end_s < until_s:
            if self._drawn_s is not None:
                duration_s, self._drawn_s = self._drawn_s, None
            else:
                duration_s = self._decode_s(sequences, context) * self._factor()
            if end_s + duration_s > until_s:
                self._drawn_s = duration_s
                break
            decided_s = end_s if self._lag else end_s + duration_s
            end_s += duration_s
            ends_s.append(end_s)
            context += more
        return ends_s

    def _padded(self, decodes: int, prompts: int) -> int:
        """A static batch keeps its shape: the slots of finished members are computed as padding."""
        return max(decodes, self._batch_size - prompts) if self._static else decodes

    def _decode_s(self, sequences: int, context_tokens: int) -> float:
        """Seconds of a step of nothing but decoding; the law is asked for its terms once."""
        try:
            terms = self._terms[sequences]
        except KeyError:
            terms = self._terms[sequences] = self._ask(sequences)
        if terms is None:
            return self._law.step_s(sequences, context_tokens, 0, 0, 1)
        seconds = terms[0] + terms[1] * context_tokens
        return seconds if seconds > terms[2] else terms[2]

    def _steps_s(self, sequences: int, contexts: range) -> list[float]:
        """Seconds of such steps in a row; the first has been asked for."""
        terms = self._terms[sequences]
        if terms is None:
            return [self._decode_s(sequences, context) for context in contexts]
        fixed_s, per_token_s, least_s = terms
        if fixed_s + per_token_s * contexts[-1] <= least_s:
            return [least_s] * len(contexts)
        steps_s = [fixed_s + per_token_s * context for context in contexts]
        if steps_s[0] < least_s:
            steps_s = [max(seconds, least_s) for seconds in steps_s]
        return steps_s

    def _factor(self) -> float:
        jitter = self._jitter
        return math.exp(self._rng.gauss(0.0, jitter) - jitter * jitter / 2)
