"""Which sequences a step computes, and how many tokens of each: the decisions of vLLM's scheduler.

First come, first served; running ones before waiting ones; a token budget that splits long prompts
into chunks; KV blocks taken as tokens are computed; when they run out, the last of the running
gives its blocks back and is computed again later. A waiting sequence starts only if all its known
tokens would fit; full blocks that the prefix cache has are not computed again.
"""

from collections import deque
from collections.abc import Sequence as Seq
from dataclasses import dataclass

from modelserve.api.spec import BatchingMode
from modelserve.errors import InputError
from servelab.engine.core import blocks
from servelab.engine.core.blocks import Block, BlockPool
from servelab.engine.core.sequences import Sequence

BLOCK_TOKENS = 16  # vLLM's default
_CONTINUOUS = (BatchingMode.CONTINUOUS, BatchingMode.NONE)


@dataclass(frozen=True, slots=True)
class CoreConfig:
    """Limits of one engine.

    ``queue_limit`` None: any number may wait. ``jitter`` is the sigma of a step's log-normal
    factor. A request is ready to start ``front_s`` seconds after it came; in mode dynamic a batch
    that is not full gathers for ``gather_s``. ``long_prefill_tokens``: most prompt tokens of one
    sequence in a step while there are others, 0 for no such limit. ``refuse_oversized`` off: also
    a request that can never get all its blocks is taken, and waits.
    """

    max_sequences: int
    max_batched_tokens: int
    max_model_tokens: int
    kv_blocks: int
    block_size: int = BLOCK_TOKENS
    batching: BatchingMode = BatchingMode.CONTINUOUS
    queue_limit: int | None = None
    jitter: float = 0.0
    gather_s: float = 0.05
    front_s: float = 0.0
    prefix_caching: bool = False
    long_prefill_tokens: int = 0
    refuse_oversized: bool = True

    def __post_init__(self) -> None:
        limits = (
            "max_sequences",
            "max_batched_tokens",
            "max_model_tokens",
            "kv_blocks",
            "block_size",
        )
        for name in limits:
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, not {getattr(self, name)}")

    @property
    def slots(self) -> int:
        """Most sequences that run at once."""
        return 1 if self.batching == BatchingMode.NONE else self.max_sequences

    def blocks_for(self, tokens: int) -> int:
        """KV blocks that hold so many tokens."""
        return -(-tokens // self.block_size)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a step computes: tokens by sequence in order, and who lost its blocks for it.

    ``started`` are those that begin or begin again, with their tokens from the prefix cache.
    """

    scheduled: Seq[tuple[Sequence, int]]
    preempted: Seq[Sequence]
    started: Seq[tuple[Sequence, int]] = ()


class Scheduler:
    """The queues and the KV blocks. How long a step takes is not its business.

    ``prefix_queries`` and ``prefix_hits`` count tokens looked up in the prefix cache and found;
    as in vLLM's counters, not those of sequences that start again.
    """

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.prefix_queries = 0
        self.prefix_hits = 0
        self._pool = BlockPool(config.kv_blocks)
        self._caching = config.prefix_caching
        self._block_size = config.block_size

    @property
    def free_blocks(self) -> int:
        """KV blocks that nobody uses."""
        return self._pool.free

    def plan(self, now_s: float) -> Plan:
        """Decide the next step and take the blocks it needs."""
        budget = self.config.max_batched_tokens
        most = self._most_tokens()
        scheduled: list[tuple[Sequence, int]] = []
        preempted: list[Sequence] = []
        started: list[tuple[Sequence, int]] = []
        index = 0
        running, size, caching = self.running, self._block_size, self._caching
        while index < len(running) and budget > 0:
            sequence = running[index]
            tokens = sequence.known - sequence.computed
            if tokens > 1:
                tokens = min(tokens, most, budget)
            end = sequence.computed + tokens
            # Asked here first, as most steps need no block.
            if end > sequence.blocks * size and not self._make_room(sequence, end, preempted):
                break
            if caching and end >= (len(sequence.kept) + 1) * size:
                self._keep(sequence, end // size)
            scheduled.append((sequence, tokens))
            budget -= tokens
            index += 1
        if not preempted and self._open:
            while budget > 0 and (start := self._admit(now_s, min(most, budget))) is not None:
                sequence, tokens, found_tokens = start
                scheduled.append((sequence, tokens))
                started.append((sequence, found_tokens))
                budget -= tokens
        return Plan(scheduled, preempted, started)

    def may_admit(self) -> bool:
        """Whether a waiting sequence could start now or soon, while the batch stays as it is."""
        if not self.waiting or not self._has_slot or not self._open:
            return False
        # What the batch computes may be what the next in line needs, and let it in.
        return self._caching or self.config.blocks_for(self.waiting[0].known) <= self.free_blocks

    def decode(self, steps: int, at_s: float) -> None:
        """Give each running sequence so many tokens, the last at that time; blocks must suffice."""
        full: list[tuple[int, int, Sequence]] = []
        size = self._block_size
        for index, sequence in enumerate(self.running):
            end = sequence.computed + steps
            taken = self._take(sequence, end)
            assert taken
            if self._caching:
                first = (len(sequence.kept) + 1) * size - sequence.computed
                full += [(step, index, sequence) for step in range(first, steps + 1, size)]
            sequence.computed = end
            sequence.known += steps
            sequence.output_tokens += steps
            sequence.last_token_s = at_s
        # Of equal blocks the first is found, so they must come as they would step by step.
        for _, _, sequence in sorted(full, key=lambda each: each[:2]):
            self._keep(sequence, len(sequence.kept) + 1)

    def free(self, sequence: Sequence) -> None:
        """Give back all blocks of a sequence."""
        self._pool.give_back(sequence.blocks - len(sequence.kept), sequence.kept)
        sequence.blocks = 0
        sequence.kept = []

    def remove(self, sequence: Sequence) -> None:
        """Take a sequence out wherever it is."""
        if sequence in self.running:
            self.running.remove(sequence)
        else:
            self.waiting.remove(sequence)
        self.free(sequence)

    def _most_tokens(self) -> int:
        """Most tokens of one sequence in the next step: a long one alone is not held back."""
        limit = self.config.long_prefill_tokens
        if limit and len(self.running) + len(self.waiting) > 1:
            return limit
        return self.config.max_batched_tokens

    @property
    def _has_slot(self) -> bool:
        return len(self.running) < self.config.slots

    @property
    def _open(self) -> bool:
        """Whether others may join: what runs may have to end first."""
        return not self.running or self.config.batching in _CONTINUOUS

    def _make_room(self, sequence: Sequence, end: int, preempted: list[Sequence]) -> bool:
        """Take blocks, preempting from the end of the batch; False if the sequence itself went."""
        while not self._take(sequence, end):
            victim = self.running.pop()
            self.free(victim)
            victim.computed = 0
            victim.preemptions += 1
            self.waiting.appendleft(victim)
            preempted.append(victim)
            if victim is sequence:
                return False
        return True

    def _take(self, sequence: Sequence, end: int) -> bool:
        """Take the blocks for its tokens up to ``end``, if there are so many."""
        needed = -(-end // self._block_size) - sequence.blocks
        if needed > 0:
            if needed > self._pool.free:
                return False
            self._pool.take(needed)
            sequence.blocks += needed
        return True

    def _admit(self, now_s: float, most: int) -> tuple[Sequence, int, int] | None:
        """Start the next in line with ``most`` tokens or fewer; also its tokens found in cache."""
        if not self.waiting or not self._has_slot:
            return None
        sequence = self.waiting[0]
        if sequence.arrived_s + self.config.front_s > now_s:
            return None
        found = self._find(sequence) if self._caching else []
        needed = self.config.blocks_for(sequence.known) - sum(block.users > 0 for block in found)
        if needed > self._pool.free:
            return None
        found_tokens = len(found) * self._block_size
        tokens = min(sequence.known - found_tokens, most)
        if self._caching:
            self._pool.use(found)
            sequence.kept, sequence.blocks, sequence.computed = found, len(found), found_tokens
            if not sequence.preemptions:
                self.prefix_queries += sequence.known
                self.prefix_hits += found_tokens
                sequence.cached_tokens = found_tokens
        end = found_tokens + tokens
        taken = self._take(sequence, end)
        assert taken
        if self._caching and end >= (len(found) + 1) * self._block_size:
            self._keep(sequence, end // self._block_size)
        self.waiting.popleft()
        self.running.append(sequence)
        if sequence.scheduled_s is None:
            sequence.scheduled_s = now_s
        return sequence, tokens, found_tokens

    def _find(self, sequence: Sequence) -> list[Block]:
        """Its full blocks that the cache has; at least one token is left to compute."""
        count = (sequence.known - 1) // self._block_size
        self._extend_keys(sequence, count)
        return self._pool.find(sequence.keys[:count])

    def _keep(self, sequence: Sequence, count: int) -> None:
        """Let the cache have its first ``count`` blocks, which are full."""
        self._extend_keys(sequence, count)
        kept = sequence.kept
        kept += [self._pool.keep(key) for key in sequence.keys[len(kept) : count]]

    def _extend_keys(self, sequence: Sequence, count: int) -> None:
        keys, size = sequence.keys, self._block_size
        missing = count - len(keys)
        if missing <= 0:
            return
        if sequence.tokens is None:
            keys += [hash((sequence.id, index)) for index in range(len(keys), count)]
        else:
            ids = sequence.tokens.ids(len(keys) * size, missing * size)
            blocks.extend_keys(keys, ids, size)
