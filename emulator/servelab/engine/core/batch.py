"""Who waits and who runs, and the KV blocks they have: the state that a scheduler decides over."""

from collections.abc import Sequence as Seq

from servelab.engine.core import blocks
from servelab.engine.core.blocks import Block, BlockPool, Chain
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.decoding import Decoding
from servelab.engine.core.queues import Queues
from servelab.engine.core.sequences import Sequence, Tokens


class Batch(Queues):
    """The queues and the KV blocks.

    Of the ``running``, which are in order, the ``decoding`` ones are counted together; ``partial``
    are the others, also in order. A sequence always has just the blocks that its computed tokens
    need; with prefix caching the full ones among them have keys, if its token ids are known. It has
    as many tables of blocks as there are ``groups`` of layers. The batch is ``steady`` if decoding
    lets nobody in who did not fit before. ``set_aside`` are the blocks that the running ones may
    need to their ends, where that matters. ``prefix_queries`` and ``prefix_hits`` count tokens
    looked up in the prefix cache and found; as in vLLM's counters, not those of sequences that
    start again.

    Where decisions lag, those that ended in a step are ``ghosts`` until the next one is decided:
    they run, as far as the scheduler knows. A block that decoding fills has its key when the next
    step is decided.
    """

    __slots__ = (
        "_filled",
        "_filling",
        "_longest",
        "block_size",
        "caching",
        "decoding",
        "ghosts",
        "groups",
        "lag",
        "partial",
        "pool",
        "prefix_hits",
        "prefix_queries",
        "set_aside",
        "started",
        "steady",
    )

    def __init__(self, config: CoreConfig) -> None:
        super().__init__(by_priority=config.by_priority)
        self.block_size = config.block_size
        self.caching = config.prefix_caching
        self.partial: list[Sequence] = []
        self.decoding = Decoding(config.block_size, listed=config.prefix_caching)
        self.pool = BlockPool(config.kv_blocks)
        self.lag = config.lag
        self._longest = config.max_model_tokens
        self.ghosts: dict[Sequence, None] = {}
        # In the step before the last decision, and in that one's.
        self._filled: list[Sequence] = []
        self._filling: list[Sequence] = []
        self.groups = 1
        self.steady = not config.prefix_caching
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
        if self._filled:
            self._keep_own(sequence)
        if self.caching and end >= size and sequence.tokens is not None:
            full = end // size
            if full > len(sequence.kept):
                self._fill(sequence, full)

    def release(self, sequence: Sequence, computed: int) -> None:
        """Give back what a sequence with so many computed tokens needs no longer: nothing here."""

    def decode(self, steps: int) -> None:
        """Take the blocks for so many beats of the decoding ones; there must be so many."""
        needed = self.decoding.blocks_needed(steps)
        if needed:
            self.pool.take(needed)
        if self.caching and self.decoding.listed:
            # Of equal blocks the first is found, so they must come as they would step by step.
            for step in range(steps):
                if self.lag:
                    if step:
                        self.settle()
                    self._keep_filled(served=True)
                for sequence in self.decoding.filling(step):
                    self._fill(sequence, len(sequence.kept) + 1)

    def serve(self, parts: Seq[tuple[Sequence, int]], ghosts: Seq[Sequence]) -> None:
        """Take the blocks for a beat, for these parts and for what ghosts waste, each in turn."""
        self.decode(1)
        for sequence, tokens in parts:
            self.take(sequence, sequence.computed, sequence.computed + tokens)
        for ghost in ghosts:
            self.waste(ghost)

    def settle(self) -> None:
        """A step is decided; where that lags, what came of the one before is known only now."""
        if self._filled or self.ghosts:
            self.bury()
        if self._filling:
            self._filled, self._filling = self._filling, []

    def bury(self) -> None:
        """What came of the last step is known: the ghosts leave."""
        if self._filled:
            self._keep_filled()
        if self.ghosts:
            for sequence in self.ghosts:
                del self.running[sequence.id]
                self.free(sequence)
            self.ghosts.clear()

    def wastes(self, ghost: Sequence) -> bool:
        """Whether the next step computes a token of it: nobody could know that it would end."""
        known = ghost.known
        return known - ghost.prompt_tokens < ghost.allowed and known < self._longest

    def waste(self, ghost: Sequence) -> None:
        """Take the place of a token that is computed for nothing; there must be a block for it."""
        self.release(ghost, ghost.computed)
        if ghost.computed % self.block_size == 0:
            self.pool.take(self.groups)
        if self._filled:
            self._keep_own(ghost)
        ghost.computed += 1

    def free(self, sequence: Sequence) -> None:
        """Give back all blocks of a sequence that is counted no longer."""
        if sequence.set_aside:
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
            # Of the full ones the last may still be without its key.
            self.pool.give_back(full - len(sequence.kept) + (rest > 0), sequence.kept)
            sequence.kept = []

    def find(self, sequence: Sequence) -> list[Block]:
        """Its full blocks that the cache has; at least one token is left to compute."""
        if not self.caching or sequence.tokens is None:
            return []
        count = (sequence.known - 1) // self.block_size
        if not count:
            return []
        keys = sequence.keys
        if len(keys) < count:
            self._extend_keys(sequence, sequence.tokens, count)
        return self.pool.find(keys if len(keys) == count else keys[:count])

    def found_tokens(self, sequence: Sequence, found: list[Block]) -> int:
        """Tokens it has when it starts, if these blocks were found."""
        if sequence.tokens is None and sequence.chain is not None:
            return sequence.chain.count * self.block_size
        return len(found) * self.block_size

    def start(
        self, sequence: Sequence, found: list[Block], now_s: float, set_aside: int = 0
    ) -> None:
        """One who waits runs from now on, with the blocks found in the cache."""
        if set_aside:
            sequence.set_aside = set_aside
            self.set_aside += set_aside
        if self.waiting[0] is sequence:
            self.waiting.popleft()
        else:
            self.waiting.remove(sequence)
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
            if found:
                self.pool.use(found)
            sequence.kept = found
        elif sequence.chain is not None:
            self.pool.use_chain(sequence.chain)
        if not sequence.preemptions:
            self.prefix_queries += sequence.known
            self.prefix_hits += sequence.computed
            sequence.cached_tokens = sequence.computed

    def preempt(self, sequence: Sequence, *, to_end: bool = False, served: int = 0) -> None:
        """Take all its blocks from a running sequence, which is computed again later.

        It is the next to start, or ``to_end`` of the queue. A ghost is just gone. ``served`` are
        tokens for which it took blocks already.
        """
        del self.running[sequence.id]
        if sequence in self.ghosts:
            del self.ghosts[sequence]
            self.free(sequence)
            return
        if sequence.counted:
            self.decoding.leave(sequence)
        else:
            self.partial.remove(sequence)
        sequence.computed += served
        self.free(sequence)
        sequence.computed = 0
        sequence.preemptions += 1
        if to_end or self.by_priority:
            self.queue(sequence)
        else:
            self.waiting.appendleft(sequence)

    def dismiss(
        self, parts: Seq[tuple[Sequence, int]] = (), *, beat: bool = False
    ) -> list[Sequence]:
        """The scheduler knows who is leaving: their blocks are free.

        A step under way computes these parts all the same, and of those who decode a ``beat``.
        Gives those of whom it computes that.
        """
        vain: list[Sequence] = []
        for sequence in self.leaving:
            if self.running.get(sequence.id) is not sequence:
                self.waiting.remove(sequence)
                continue
            del self.running[sequence.id]
            if sequence.counted:
                self.decoding.leave(sequence)
                if beat:
                    sequence.computed += 1
                    vain.append(sequence)
            elif sequence in self.partial:
                self.partial.remove(sequence)
                sequence.computed += sum(tokens for each, tokens in parts if each is sequence)
            self.free(sequence)
        self.leaving.clear()
        return vain

    def _fill(self, sequence: Sequence, count: int) -> None:
        """Its first ``count`` blocks are full; keys need tokens, and of a beat those come later."""
        if self.lag and sequence.counted:
            self._filling.append(sequence)
        else:
            self._keep(sequence, count)

    def _keep_own(self, sequence: Sequence) -> None:
        """If a beat filled a block of its, let the cache have it."""
        if sequence in self._filled:
            self._filled.remove(sequence)
            self._keep(sequence, self._kept(sequence) + 1)

    def _kept(self, sequence: Sequence) -> int:
        """Its first blocks that were let to the cache."""
        return len(sequence.kept)

    def _keep_filled(self, *, served: bool = False) -> None:
        """Let the cache have the blocks that a beat filled; ``served``: of those in the next."""
        left = []
        for sequence in self._filled:
            wasted = sequence in self.ghosts and self.wastes(sequence)
            if served and not (sequence.counted or wasted):
                left.append(sequence)
            elif self.running.get(sequence.id) is sequence:
                self._keep(sequence, self._kept(sequence) + 1)
        self._filled = left

    def _keep(self, sequence: Sequence, count: int) -> None:
        """Let the cache have its first ``count`` blocks, which are full."""
        assert sequence.tokens is not None
        keys, kept = sequence.keys, sequence.kept
        if len(keys) < count:
            self._extend_keys(sequence, sequence.tokens, count)
        add = self.pool.add
        for at in range(len(kept), count):
            kept.append(add(keys[at]))

    def _extend_keys(self, sequence: Sequence, tokens: Tokens, count: int) -> None:
        """Its first ``count`` blocks have keys, which are more than had."""
        keys, size = sequence.keys, self.block_size
        first = len(keys)
        blocks.extend_keys(keys, tokens.ids(first * size, (count - first) * size), size)
