"""Who waits and who runs, and the KV blocks they have: the state that a scheduler decides over."""

from collections import deque

from servelab.engine.core import blocks
from servelab.engine.core.blocks import Block, BlockPool, Chain
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.decoding import Decoding
from servelab.engine.core.sequences import Sequence, Tokens


class Batch:
    """The queues and the KV blocks.

    Of the ``running``, which are in order, the ``decoding`` ones are counted together; ``partial``
    are the others, also in order. A sequence always has just the blocks that its computed tokens
    need; with prefix caching the full ones among them have keys, if its token ids are known.
    ``set_aside`` are the blocks that the running ones may need to their ends, where that matters.
    ``prefix_queries`` and ``prefix_hits`` count tokens looked up in the prefix cache and found; as
    in vLLM's counters, not those of sequences that start again.
    """

    __slots__ = (
        "block_size",
        "caching",
        "decoding",
        "leaving",
        "partial",
        "pool",
        "prefix_hits",
        "prefix_queries",
        "running",
        "set_aside",
        "started",
        "waiting",
    )

    def __init__(self, config: CoreConfig) -> None:
        self.block_size = config.block_size
        self.caching = config.prefix_caching
        self.waiting: deque[Sequence] = deque()
        self.running: dict[str, Sequence] = {}
        self.partial: list[Sequence] = []
        self.decoding = Decoding(config.block_size, listed=config.prefix_caching)
        self.pool = BlockPool(config.kv_blocks)
        self.leaving: list[Sequence] = []  # cancelled in the step under way
        self.started = 0
        self.set_aside = 0
        self.prefix_queries = 0
        self.prefix_hits = 0

    def take(self, sequence: Sequence, computed: int, end: int) -> None:
        """Take the blocks for its tokens from ``computed`` to ``end``; there must be so many."""
        size = self.block_size
        needed = -(-end // size) - -(-computed // size)
        if needed:
            self.pool.take(needed)
        if self.caching and sequence.tokens is not None and end // size > len(sequence.kept):
            self._keep(sequence, sequence.tokens, end // size)

    def decode(self, steps: int) -> None:
        """Take the blocks for so many beats of the decoding ones; there must be so many."""
        needed = self.decoding.blocks_needed(steps)
        if needed:
            self.pool.take(needed)
        if self.caching:
            # Of equal blocks the first is found, so they must come as they would step by step.
            for step in range(steps):
                for sequence in self.decoding.filling(step):
                    assert sequence.tokens is not None
                    self._keep(sequence, sequence.tokens, len(sequence.kept) + 1)

    def free(self, sequence: Sequence) -> None:
        """Give back all blocks of a sequence that is counted no longer."""
        self.set_aside -= sequence.set_aside
        sequence.set_aside = 0
        full, rest = divmod(sequence.computed, self.block_size)
        if not self.caching:
            self.pool.give_back(full + (rest > 0), ())
        elif sequence.tokens is None:
            self.pool.give_back(rest > 0, ())
            if full:
                sequence.chain = Chain(full)
                self.pool.give_back_chain(sequence.chain)
        else:
            self.pool.give_back(rest > 0, sequence.kept)
            sequence.kept = []

    def find(self, sequence: Sequence) -> list[Block]:
        """Its full blocks that the cache has; at least one token is left to compute."""
        if not self.caching or sequence.tokens is None:
            return []
        count = (sequence.known - 1) // self.block_size
        self._extend_keys(sequence, sequence.tokens, count)
        return self.pool.find(sequence.keys[:count])

    def found_tokens(self, sequence: Sequence, found: list[Block]) -> int:
        """Tokens it has when it starts, if these blocks were found."""
        if sequence.tokens is None and sequence.chain is not None:
            return sequence.chain.count * self.block_size
        return len(found) * self.block_size

    def start(
        self, sequence: Sequence, found: list[Block], now_s: float, set_aside: int = 0
    ) -> None:
        """The first in the queue runs from now on, with the blocks found in the cache."""
        sequence.set_aside = set_aside
        self.set_aside += set_aside
        self.waiting.popleft()
        self.started += 1
        sequence.place = self.started
        if self.caching:
            self._use(sequence, found)
        self.running[sequence.id] = sequence
        self.partial.append(sequence)
        if sequence.scheduled_s is None:
            sequence.scheduled_s = now_s

    def _use(self, sequence: Sequence, found: list[Block]) -> None:
        sequence.computed = self.found_tokens(sequence, found)
        if sequence.tokens is not None:
            self.pool.use(found)
            sequence.kept = found
        elif sequence.chain is not None:
            self.pool.use_chain(sequence.chain)
        if not sequence.preemptions:
            self.prefix_queries += sequence.known
            self.prefix_hits += sequence.computed
            sequence.cached_tokens = sequence.computed

    def preempt(self, sequence: Sequence, *, to_end: bool = False) -> None:
        """Take all its blocks from a running sequence, which is computed again later.

        It is the next to start, or ``to_end`` of the queue.
        """
        del self.running[sequence.id]
        if sequence.counted:
            self.decoding.leave(sequence)
        else:
            self.partial.remove(sequence)
        self.free(sequence)
        sequence.computed = 0
        sequence.preemptions += 1
        if to_end:
            self.waiting.append(sequence)
        else:
            self.waiting.appendleft(sequence)

    def drop(self, sequence: Sequence) -> None:
        """Take a sequence out wherever it is; its blocks it keeps."""
        if sequence.id not in self.running:
            self.waiting.remove(sequence)
            return
        del self.running[sequence.id]
        if sequence.counted:
            self.decoding.leave(sequence)
        else:
            self.partial.remove(sequence)

    def _keep(self, sequence: Sequence, tokens: Tokens, count: int) -> None:
        """Let the cache have its first ``count`` blocks, which are full."""
        self._extend_keys(sequence, tokens, count)
        kept, keep = sequence.kept, self.pool.keep
        kept += [keep(key) for key in sequence.keys[len(kept) : count]]

    def _extend_keys(self, sequence: Sequence, tokens: Tokens, count: int) -> None:
        keys, size = sequence.keys, self.block_size
        missing = count - len(keys)
        if missing > 0:
            blocks.extend_keys(keys, tokens.ids(len(keys) * size, missing * size), size)
