"""Which sequences a step computes, and how many tokens of each: the decisions of vLLM's scheduler.

First come, first served; running ones before waiting ones; a token budget that splits long prompts
into chunks; KV blocks taken as tokens are computed; when they run out, the last of the running
gives its blocks back and is computed again later. A waiting sequence starts only if all its known
tokens would fit.
"""

from collections import deque
from collections.abc import Sequence as Seq
from dataclasses import dataclass

from modelserve.api.spec import BatchingMode
from modelserve.errors import InputError
from servelab.engine.sequences import Sequence

BLOCK_TOKENS = 16  # vLLM's default


@dataclass(frozen=True, slots=True)
class CoreConfig:
    """Limits of one engine.

    ``queue_limit`` None: any number may wait. ``jitter`` is the sigma of a step's log-normal
    factor. A request is ready to start ``front_s`` seconds after it came; in mode dynamic a batch
    that is not full gathers for ``gather_s``.
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
    """What a step computes: tokens by sequence in order, and who lost its blocks for it."""

    scheduled: Seq[tuple[Sequence, int]]
    preempted: Seq[Sequence]


class Scheduler:
    """The queues and the KV blocks. How long a step takes is not its business."""

    def __init__(self, config: CoreConfig) -> None:
        self.config = config
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.free_blocks = config.kv_blocks

    def plan(self, now_s: float) -> Plan:
        """Decide the next step and take the blocks it needs."""
        budget = self.config.max_batched_tokens
        scheduled: list[tuple[Sequence, int]] = []
        preempted: list[Sequence] = []
        index = 0
        running = self.running
        while index < len(running) and budget > 0:
            sequence = running[index]
            tokens = min(sequence.known - sequence.computed, budget)
            if not self._make_room(sequence, tokens, preempted):
                break
            scheduled.append((sequence, tokens))
            budget -= tokens
            index += 1
        if not preempted:
            self._admit(now_s, budget, scheduled)
        return Plan(scheduled, preempted)

    def may_admit(self) -> bool:
        """Whether a waiting sequence could start now or soon, while the batch stays as it is."""
        if not self.waiting or len(self.running) >= self.config.slots:
            return False
        if self.running and self.config.batching in (BatchingMode.STATIC, BatchingMode.DYNAMIC):
            return False
        return self.config.blocks_for(self.waiting[0].known) <= self.free_blocks

    def decode(self, steps: int, at_s: float) -> None:
        """Give each running sequence so many tokens, the last at that time; blocks must suffice."""
        for sequence in self.running:
            taken = self._take(sequence, steps)
            assert taken
            sequence.computed += steps
            sequence.known += steps
            sequence.output_tokens += steps
            sequence.last_token_s = at_s

    def free(self, sequence: Sequence) -> None:
        """Give back all blocks of a sequence."""
        self.free_blocks += sequence.blocks
        sequence.blocks = 0

    def remove(self, sequence: Sequence) -> None:
        """Take a sequence out wherever it is."""
        if sequence in self.running:
            self.running.remove(sequence)
        else:
            self.waiting.remove(sequence)
        self.free(sequence)

    def _make_room(self, sequence: Sequence, tokens: int, preempted: list[Sequence]) -> bool:
        """Take blocks, preempting from the end of the batch; False if the sequence itself went."""
        while not self._take(sequence, tokens):
            victim = self.running.pop()
            self.free(victim)
            victim.computed = 0
            victim.preemptions += 1
            self.waiting.appendleft(victim)
            preempted.append(victim)
            if victim is sequence:
                return False
        return True

    def _take(self, sequence: Sequence, tokens: int) -> bool:
        size = self.config.block_size
        needed = -(-(sequence.computed + tokens) // size) - sequence.blocks
        if needed > self.free_blocks:
            return False
        if needed > 0:
            self.free_blocks -= needed
            sequence.blocks += needed
        return True

    def _admit(self, now_s: float, budget: int, scheduled: list[tuple[Sequence, int]]) -> None:
        if self.running and self.config.batching in (BatchingMode.STATIC, BatchingMode.DYNAMIC):
            return
        slots = self.config.slots
        while self.waiting and budget > 0 and len(self.running) < slots:
            sequence = self.waiting[0]
            if sequence.arrived_s + self.config.front_s > now_s:
                break
            if self.config.blocks_for(sequence.known) > self.free_blocks:
                break
            tokens = min(sequence.known, budget)
            self._take(sequence, tokens)
            self.waiting.popleft()
            self.running.append(sequence)
            if sequence.scheduled_s is None:
                sequence.scheduled_s = now_s
            scheduled.append((sequence, tokens))
            budget -= tokens
