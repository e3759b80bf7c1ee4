"""Which sequences a step computes, and how many tokens of each: the decisions of vLLM's scheduler.

First come, first served; running ones before waiting ones; a token budget that splits long prompts
into chunks; KV blocks taken as tokens are computed; when they run out, the last of the running
gives its blocks back and is computed again later. A waiting sequence starts only if all its known
tokens would fit; full blocks that the prefix cache has are not computed again.
"""

import math

from modelserve.api.spec import BatchingMode
from servelab.engine.core import blocks
from servelab.engine.core.batch import Batch
from servelab.engine.core.blocks import Block
from servelab.engine.core.cadence import Cadence
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.plans import Plan
from servelab.engine.core.sequences import RANK, Sequence

_CONTINUOUS = (BatchingMode.CONTINUOUS, BatchingMode.NONE)


class VllmScheduler:
    """vLLM's rules."""

    _reserves = False  # blocks for a sequence that starts, beside those that it takes

    def __init__(self, config: CoreConfig, batch: Batch) -> None:
        self._config = config
        self._batch = batch
        self._slots = config.slots
        self._divides = config.chunked_prefill
        self._spare_blocks = config.spare_blocks
        self._whole = config.reserve_prompts
        self._continuous = config.batching in _CONTINUOUS
        interval = config.prefill_interval
        self._cadence = Cadence(interval, batch) if interval > 1 else None

    def plan(self, now_s: float) -> Plan:
        """Decide the next step and take the blocks it needs."""
        plan = Plan()
        most, cadence = self._most_tokens(), self._cadence
        held = cadence is not None and cadence.begin()
        budget = self._config.max_batched_tokens - self._batch.decoding.count
        if held or budget < 0 or not self._all_served(plan, budget, most):
            budget = self._in_order(plan, most, held=held)
        elif plan.parts or plan.wasted:
            budget -= sum(tokens for _, tokens in plan.parts) + len(plan.wasted)
        if self._batch.waiting and not plan.preempted and self._open:
            self._admit(plan, now_s, budget, most, held=held)
        if cadence is not None:
            looked = not (held or plan.preempted)
            front_s = self._config.front_s
            cadence.end(plan, self._batch.next(now_s, front_s) is not None if looked else None)
        return plan

    def ready_s(self) -> float:
        """From when on a waiting sequence might start if the batch stays as it is, or inf."""
        batch = self._batch
        if not batch.waiting or len(batch.running) >= self._slots or not self._open:
            return math.inf
        # What the batch computes may be what the next in line needs, and let it in. By priority
        # another may start while the first in line has not been here for long enough.
        line = batch.waiting if batch.by_priority else (batch.waiting[0],)
        if batch.steady and not any(self._fits(each, [], 1) for each in line):
            return math.inf
        return batch.oldest_s + self._config.front_s

    def beats(self) -> int:
        """Steps from here on that are nothing but a beat, with blocks enough, if nobody starts."""
        batch, decoding = self._batch, self._batch.decoding
        if batch.partial or not 0 < decoding.count <= self._config.max_batched_tokens:
            return 0
        if self._cadence is not None and not self._cadence.jumps:
            return 0
        return decoding.steps_within(decoding.beats_to_end(), batch.pool.free // batch.groups)

    def _most_tokens(self) -> int:
        """Most tokens of one sequence in the next step: a long one alone is not held back."""
        config, batch = self._config, self._batch
        limit, most = config.long_prefill_tokens, config.max_batched_tokens
        if not limit or (sequences := len(batch.running) + len(batch.waiting)) <= 1:
            return most
        return max(limit, most // sequences) if config.fair_prefills else limit

    @property
    def _open(self) -> bool:
        """Whether others may join: what runs may have to end first."""
        return self._continuous or not self._batch.running

    def _all_served(self, plan: Plan, budget: int, most: int) -> bool:
        """Plan the running ones if none has to give way, which can be told without a look at each.

        That is, the decoding ones come first, and there are blocks for all. Otherwise do nothing.
        """
        batch = self._batch
        wasted = [ghost for ghost in batch.ghosts if batch.wastes(ghost)] if batch.ghosts else []
        budget -= len(wasted)
        if budget < 0 or (batch.partial and not self._decoding_first()):
            return False
        needed, size = batch.decoding.blocks_needed(1), batch.block_size
        for ghost in wasted:
            needed += blocks.needed(ghost.computed, ghost.computed + 1, size)
        parts = self._parts(budget, most) if batch.partial else []
        for sequence, tokens in parts:
            needed += blocks.needed(sequence.computed, sequence.computed + tokens, size)
        if self._lacks(needed):
            return False
        if wasted:
            batch.serve(parts, wasted)
        else:
            batch.decode(1)
            for sequence, tokens in parts:
                batch.take(sequence, sequence.computed, sequence.computed + tokens)
        plan.parts, plan.wasted = parts, wasted
        return True

    def _decoding_first(self) -> bool:
        """Whether all that compute their prompts have begun after all that decode."""
        batch = self._batch
        left, ghosts = len(batch.partial), batch.ghosts
        for last in reversed(batch.running.values()):
            if last.counted:
                return False
            left -= last not in ghosts
            if not left:
                break
        return True

    def _parts(self, budget: int, most: int) -> list[tuple[Sequence, int]]:
        """What each of those gets of the budget."""
        parts: list[tuple[Sequence, int]] = []
        for sequence in self._batch.partial:
            tokens = min(sequence.known - sequence.computed, most, budget)
            if tokens == 0:
                break
            budget -= tokens
            parts.append((sequence, tokens))
        return parts

    def _in_order(self, plan: Plan, most: int, *, held: bool) -> int:
        """Plan the running ones, each in its turn; the budget that is left.

        A decoding one that gets no token is counted no longer. ``held``: prompts have a pause.
        """
        batch, decoding, cadence = self._batch, self._batch.decoding, self._cadence
        budget = self._config.max_batched_tokens
        served: dict[Sequence, int] = {}
        waits = False
        for sequence in list(batch.running.values()):
            if sequence.id not in batch.running:
                continue
            if sequence in batch.ghosts and not batch.wastes(sequence):
                continue
            if held and cadence is not None and cadence.begun(sequence):
                continue
            computed = decoding.computed(sequence) if sequence.counted else sequence.computed
            tokens = min(1 if sequence.counted else sequence.known - computed, most, budget)
            if tokens == 0:
                waits = True
                if sequence.counted:
                    decoding.leave(sequence)
                continue
            budget += self._make_room(sequence, computed, computed + tokens, plan, served)
            if sequence.id not in batch.running:
                continue
            budget -= tokens
            served[sequence] = tokens
            self._serve(sequence, computed, tokens, plan)
        if waits:
            batch.partial = [
                each
                for each in batch.running.values()
                if not each.counted and each not in batch.ghosts
            ]
        return budget

    def _serve(self, sequence: Sequence, computed: int, tokens: int, plan: Plan) -> None:
        """Plan so many tokens of one of the running, for which there are blocks."""
        batch, cadence = self._batch, self._cadence
        if sequence in batch.ghosts:
            batch.waste(sequence)
            plan.wasted.append(sequence)
            return
        batch.take(sequence, computed, computed + tokens)
        if not sequence.counted:
            plan.parts.append((sequence, tokens))
            if cadence is not None:
                cadence.serve(sequence)

    def _make_room(
        self,
        sequence: Sequence,
        computed: int,
        end: int,
        plan: Plan,
        served: dict[Sequence, int],
    ) -> int:
        """Preempt until there are blocks, or it has none itself; the budget that comes back.

        It is the last who goes, or by priority one who may have been ``served`` in this step.
        """
        batch = self._batch
        batch.release(sequence, computed)
        needed = blocks.needed(computed, end, batch.block_size)
        restored = 0
        while self._lacks(needed):
            victim = self._victim()
            tokens = served.pop(victim, 0)
            restored += tokens
            if tokens and victim in batch.ghosts:
                plan.wasted.remove(victim)
                tokens = 0  # it has computed them, as far as its blocks go
            elif tokens and not victim.counted:
                plan.parts.remove((victim, tokens))
            batch.preempt(victim, served=tokens)
            plan.preempted.append(victim)
            if victim is sequence:
                break
        return restored

    def _lacks(self, count: int) -> bool:
        """Whether there are not so many blocks, in each table, for a step of those who run."""
        return count * self._batch.groups > self._batch.pool.free

    def _victim(self) -> Sequence:
        running = self._batch.running.values()
        return max(running, key=RANK) if self._batch.by_priority else next(reversed(running))

    def _admit(self, plan: Plan, now_s: float, budget: int, most: int, *, held: bool) -> None:
        """Start those next in line while there are slots, blocks and budget.

        ``held``: only who has but one token to compute.
        """
        batch, front_s = self._batch, self._config.front_s
        waiting, running, slots = batch.waiting, batch.running, self._slots
        while budget > 0 and waiting and len(running) < slots:
            sequence = waiting[0]
            if sequence.arrived_s + front_s > now_s:
                later = batch.next(now_s, front_s) if batch.by_priority else None
                if later is None:
                    return
                sequence = later
            found = batch.find(sequence)
            if held and batch.found_tokens(sequence, found) < sequence.known - 1:
                return
            largest = most if most < budget else budget
            if not self._fits(sequence, found, largest):
                return
            if not self._divides and self._waits(sequence, found, most, budget):
                return
            batch.start(sequence, found, now_s, self._set_aside(sequence) if self._reserves else 0)
            computed = sequence.computed
            tokens = sequence.known - computed
            if tokens > largest:
                tokens = largest
            batch.take(sequence, computed, computed + tokens)
            plan.parts.append((sequence, tokens))
            plan.started.append((sequence, computed))
            budget -= tokens

    def _fits(self, sequence: Sequence, found: list[Block], most_tokens: int) -> bool:
        """Whether there are blocks to start it with what was found, and compute so many tokens.

        All that its known tokens need must be there, unless only the first part counts.
        """
        batch = self._batch
        tokens = sequence.known
        if not self._whole:
            tokens = min(tokens, batch.found_tokens(sequence, found) + most_tokens)
        needed = -(-tokens // batch.block_size)
        if found:
            needed -= in_use(found)
        if self._spare_blocks and batch.running:
            needed += self._spare_blocks
        return needed <= batch.pool.free

    def _waits(self, sequence: Sequence, found: list[Block], most: int, budget: int) -> bool:
        """Whether it waits for a step that has budget for its whole prompt, or the most of it."""
        if budget == self._config.max_batched_tokens:
            return False
        return min(most, sequence.known - self._batch.found_tokens(sequence, found)) > budget

    def _set_aside(self, sequence: Sequence) -> int:
        """Blocks that are held ready for a sequence that starts, if it ``reserves``."""
        return 0


def in_use(found: list[Block]) -> int:
    """Those of the blocks that somebody has anyway."""
    return len([block for block in found if block.users])
