"""SGLang's rules: prompts first, admission by what answers may take, retraction of the youngest.

A step computes prompts alone, in chunks, or decodes. Who waits starts if its prompt and all tokens
it may get fit beside a share of what the running ones may still get. The share falls with every
decoding step, as answers end early, and rises when blocks ran out after all: those with the fewest
tokens then lose theirs and queue up again, last. Answers that cannot end early (``ignore_eos``) are
reckoned in full, without a prefix cache by when each ends. By priority, one who finds no slot may
take that of one far behind. Layers with sliding windows have a pool of their own, for each its
window, for prompts their chunk. Constants are of version 0.5.23, where flags change them.
"""

import math

from modelserve.api.spec import BatchingMode
from servelab.engine.core.batch import Batch
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.plans import Plan
from servelab.engine.core.sequences import RANK, Sequence

MOST_NEW_TOKENS = 4096  # of one request, in the reckoning
MAX_PREFILL_TOKENS = 16384
FIRST_SHARE = 0.7
LEAST_SHARE = 0.14 * FIRST_SHARE
SHARE_STEPS = 600  # from the first share to the least
RETRACT_STEPS = 20  # decoding steps for which a retraction makes room
RESERVE_TOKENS = 1  # of each that runs, where it is reckoned when they end


class SglangScheduler:
    """SGLang's rules."""

    def __init__(self, config: CoreConfig, batch: Batch) -> None:
        self._config = config
        self._batch = batch
        self._slots = config.slots
        self._continuous = config.batching in (BatchingMode.CONTINUOUS, BatchingMode.NONE)
        self._window = config.second_pool[0] if config.second_pool else 0
        self._share = FIRST_SHARE
        self._since_beat = 0  # the beat at which the share was that
        self._full_at: int | None = None  # no more than so many run until somebody leaves

    @property
    def share(self) -> float:
        """Of the tokens that running ones may still get, the part that admission reckons with."""
        beats = max(0, self._batch.decoding.beats - self._since_beat)
        fall = (FIRST_SHARE - LEAST_SHARE) / SHARE_STEPS
        return max(self._share - fall * beats, LEAST_SHARE)

    def plan(self, now_s: float) -> Plan:
        """Decide the next step and take the blocks it needs."""
        plan, batch = Plan(), self._batch
        rested = batch.waiting and batch.oldest_s >= batch.decoding.last_beat_s
        if not batch.running and rested:
            self._set_share(FIRST_SHARE)
        self._prefill(plan, now_s)
        decoding = batch.decoding
        if plan.parts:
            mixes = self._config.mixed_chunk and decoding.blocks_needed(1) <= batch.pool.free
            # Who becomes decoding in this step is counted only after it.
            plan.beat = mixes and decoding.count > 0
        elif decoding.blocks_needed(1) > batch.pool.free:
            self._retract(plan)
        if plan.beat:
            batch.decode(1)
        return plan

    def ready_s(self) -> float:
        """From when on a waiting sequence might start if the batch stays as it is, or inf."""
        batch = self._batch
        running = len(batch.running)
        if not batch.waiting or not (self._continuous or not running):
            return math.inf
        if self._full or (running >= self._slots and not self._behind(batch.waiting[0])):
            return math.inf
        return batch.oldest_s + self._config.front_s

    def beats(self) -> int:
        """Steps from here on that are nothing but a beat, with blocks enough, if nobody starts."""
        batch, decoding = self._batch, self._batch.decoding
        if batch.partial or not decoding.count:
            return 0
        return decoding.steps_within(decoding.beats_to_end(), batch.pool.free)

    @property
    def _full(self) -> bool:
        return self._full_at is not None and len(self._batch.running) >= self._full_at

    def _behind(self, sequence: Sequence) -> list[Sequence]:
        """Those who decode and may have to stop for one who waits, the first to do so first."""
        gap = self._config.priority_gap
        if gap is None:
            return []
        running = self._batch.running.values()
        behind = [
            each for each in running if each.counted and each.priority > sequence.priority + gap
        ]
        return sorted(behind, key=RANK, reverse=True)

    def _set_share(self, share: float) -> None:
        self._share, self._since_beat = share, self._batch.decoding.beats

    def _prefill(self, plan: Plan, now_s: float) -> None:
        """Plan prompts: the one that is begun, then those that wait, as far as there is room."""
        batch, config = self._batch, self._config
        if not batch.partial and (self.ready_s() > now_s):
            return
        rows = batch.decoding.count if config.mixed_chunk else 0
        budget = min(config.max_batched_tokens, MAX_PREFILL_TOKENS) - rows
        room = batch.pool.free * batch.block_size - rows - self._expected_tokens()
        second = self._second_room()
        for sequence in batch.partial:
            tokens = min(sequence.known - sequence.computed, budget, self._free_tokens(sequence))
            if tokens <= 0:
                return
            batch.take(sequence, sequence.computed, sequence.computed + tokens)
            plan.parts.append((sequence, tokens))
            room -= self._charge(sequence, tokens)
            second -= max(0, tokens - self._window)
            budget -= tokens
        if self._continuous or len(batch.running) == len(batch.partial):
            self._admit(plan, now_s, budget, room, second)

    def _admit(self, plan: Plan, now_s: float, budget: int, room: float, second: float) -> None:
        """Start those next in line; ``room`` in the pools is in tokens, less what is set aside."""
        batch, config = self._batch, self._config
        if self._full:
            return
        self._full_at = None
        unit = min(batch.block_size, config.max_batched_tokens)
        crowded = False
        while batch.waiting and budget > 0:
            sequence = batch.next(now_s, config.front_s)
            if sequence is None or sequence in plan.preempted:
                return
            crowded = crowded or len(batch.running) >= self._slots
            if crowded:
                freed = self._make_way(sequence, plan, room)
                if not freed:
                    self._set_full()
                    return
                room += freed
            found = batch.find(sequence)
            found_tokens = batch.found_tokens(sequence, found)
            rest = sequence.known - found_tokens
            tokens = rest if rest <= budget else budget // unit * unit
            # Found blocks that nobody uses can no longer be taken by others.
            used = sum(block.users > 0 for block in found)
            unused = found_tokens - used * batch.block_size
            needed = rest + _to_come(sequence) + batch.block_size
            alone = not batch.running and rest <= self._free_tokens(sequence) - unused
            windowed = self._window_tokens(rest, min(rest, budget), _to_come(sequence))
            if sequence.fixed_length and not batch.caching and not self._window:
                fits = self._lasts(sequence, rest, room, len(plan.parts))
            else:
                fits = needed < room - unused and windowed < second
            if not (fits or alone):
                self._set_full()
                return
            if tokens == 0:
                return
            batch.start(sequence, found, now_s)
            batch.take(sequence, sequence.computed, sequence.computed + tokens)
            plan.parts.append((sequence, tokens))
            plan.started.append((sequence, sequence.computed))
            room -= unused + self._charge(sequence, tokens)
            second -= windowed
            budget -= tokens

    def _second_room(self) -> float:
        """Tokens that the pool of layers with a window has left: inf if there is none."""
        if self._config.second_pool is None:
            return math.inf
        decoding, size = self._batch.decoding, self._batch.block_size
        held = 0
        for each in self._batch.running.values():
            computed = decoding.computed(each) if each.counted else each.computed
            held += min(computed, self._window) + size
        return self._config.second_pool[1] - held

    def _window_tokens(self, rest: int, tokens: int, to_come: int) -> int:
        """Tokens of that pool that one needs which has a rest to compute, some of it at once."""
        window = self._window
        return max(0, tokens - window) + min(rest + to_come, window) + self._batch.block_size

    def _make_way(self, sequence: Sequence, plan: Plan, room: float) -> float:
        """Stop those behind until one who waits has room; the tokens that are free then, or 0.

        Nobody stops if that would not do.
        """
        batch = self._batch
        needed = sequence.known + min(sequence.allowed, MOST_NEW_TOKENS) - room
        chosen: list[Sequence] = []
        for each in self._behind(sequence):
            chosen.append(each)
            needed -= self._expected(each, self.share)
            if needed <= 0:
                break
        if not chosen or needed > 0:
            return 0.0
        freed = sum(self._expected(each, self.share) for each in chosen)
        free_blocks = batch.pool.free
        for each in chosen:
            self._stop(each, plan)
        return freed + (batch.pool.free - free_blocks) * batch.block_size

    def _set_full(self) -> None:
        """Ask again only when somebody has left; but a first batch is asked about once more.

        Where one may make way for another it is asked each time.
        """
        batch = self._batch
        asks = not batch.decoding.count or self._config.priority_gap is not None
        self._full_at = None if asks else len(batch.running)

    def _charge(self, sequence: Sequence, tokens: int) -> int:
        """Tokens that a part of a prompt takes or sets aside; a last part also the answer's."""
        size = self._batch.block_size
        ends = sequence.computed + tokens == sequence.known
        return -(-tokens // size) * size + size + (_to_come(sequence) if ends else 0)

    def _expected_tokens(self) -> float:
        """What the decoding ones are reckoned to take yet."""
        share, running = self.share, self._batch.running.values()
        return sum(self._expected(each, share) for each in running if each.counted)

    def _expected(self, sequence: Sequence, share: float) -> float:
        return self._may_get(sequence) * (1.0 if sequence.fixed_length else share)

    def _lasts(self, sequence: Sequence, rest: int, room: float, begun: int) -> bool:
        """Whether one with a rest to compute and all that run can have all their tokens.

        Each gives its place back at its end. So many are ``begun`` in the step.
        """
        batch, size = self._batch, self._batch.block_size
        needed = (-(-rest // size) + 1) * size
        free = (batch.pool.free - begun) * size - needed
        if free < 0 or needed > room:
            return False
        ends = []
        for each in (*batch.running.values(), sequence):
            known = batch.decoding.computed(each) + 1 if each.counted else each.known
            share = 1.0 if each.fixed_length else self.share
            left = each.allowed * share - (known - each.prompt_tokens)
            if left > 0:
                ends.append((left, known))
        for place, (left, known) in enumerate(sorted(ends)):
            if free - left * (len(ends) - place) <= RESERVE_TOKENS * (len(ends) - place):
                return False
            free += known
        return True

    def _may_get(self, sequence: Sequence) -> int:
        """Tokens that one who decodes may get yet, as far as they are reckoned with."""
        output = self._batch.decoding.computed(sequence) + 1 - sequence.prompt_tokens
        return min(sequence.allowed - output, MOST_NEW_TOKENS)

    def _free_tokens(self, sequence: Sequence) -> int:
        """Tokens for which it has or can take blocks."""
        size = self._batch.block_size
        return self._batch.pool.free * size + -sequence.computed % size

    def _retract(self, plan: Plan) -> None:
        """Stop those with the fewest tokens, of equals the longest prompt, until a beat has room.

        At least one goes, and one stays. A prompt that is begun goes only after them.
        """
        batch, decoding = self._batch, self._batch.decoding
        order = [each for each in batch.running.values() if each.counted]
        order.sort(
            key=lambda each: (
                decoding.computed(each) - each.prompt_tokens,
                -each.prompt_tokens,
            ),
            reverse=True,
        )
        while len(order) > 1:
            self._stop(order.pop(), plan)
            if decoding.blocks_needed(1) <= batch.pool.free:
                break
        while batch.partial and decoding.blocks_needed(1) > batch.pool.free:
            self._stop(batch.partial[-1], plan)
        outputs = sum(decoding.computed(each) + 1 - each.prompt_tokens for each in order)
        allowed = sum(each.allowed for each in order)
        self._set_share(min(1.0, (outputs + RETRACT_STEPS * len(order)) / (allowed + 1)))
        self._since_beat += 1  # the share does not fall with this beat
        self._full_at = None

    def _stop(self, sequence: Sequence, plan: Plan) -> None:
        self._batch.preempt(sequence, to_end=True)
        plan.preempted.append(sequence)


def _to_come(sequence: Sequence) -> int:
    """Tokens that it may get yet, as far as they are reckoned with."""
    return min(max(sequence.allowed - sequence.output_tokens, 0), MOST_NEW_TOKENS)
