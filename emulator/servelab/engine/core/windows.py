"""The KV blocks of models whose layers have sliding windows: vLLM's hybrid KV cache manager.

Layers of one kind are in groups of as many layers each; a sequence has a table of blocks for each
group, all of one pool. Before a windowed table takes blocks it gives back those that the window of
the next token does not reach. Of its blocks the prefix cache has only those that the same prompt
would need if it came again, or one that is like it up to the junction where an earlier one left it
(``prefix_cache_retention_interval`` 0, which is the default of version 0.33).
"""

from collections.abc import Iterable
from collections.abc import Sequence as Seq

from servelab.engine.core import schedule
from servelab.engine.core.batch import Batch
from servelab.engine.core.blocks import Block
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.decoding import Decoding
from servelab.engine.core.schedule import VllmScheduler
from servelab.engine.core.sequences import PLACE, Sequence

# Keys of the same tokens differ from table to table.
_TABLE_KEY = 0x9E3779B97F4A7C15


class OwnTokens:
    """Stands for token ids that nobody knows: like those of no other sequence."""

    __slots__ = ("_token",)

    def __init__(self, name: str) -> None:
        self._token = hash((name, "own"))

    def ids(self, first: int, count: int) -> Seq[int]:
        """So many ids."""
        return [self._token] * count


class WindowBatch(Batch):
    """The queues, and blocks in several tables. A found prefix is used at once or not at all."""

    __slots__ = (
        "_decided",
        "_found",
        "_full",
        "_hit",
        "_new",
        "_tail",
        "_window",
        "_window_blocks",
        "_windowed",
    )

    def __init__(self, config: CoreConfig) -> None:
        super().__init__(config)
        tables = list(enumerate(config.tables))
        self._window = max(window or 0 for window in config.tables)
        self._full = [at for at, window in tables if window is None]
        self._windowed = [at for at, window in tables if window is not None]
        self._window_blocks = config.window_blocks(self._window)
        self._tail = -(-(self._window - 1) // self.block_size)  # blocks that a hit must end with
        self._hit = 0  # blocks of the prefix that was found last, in each table
        self._found: list[list[Block | None]] = []
        self._decided = 0  # steps
        self._new: list[Sequence] = []  # whose second beat comes next
        self.decoding = Decoding(config.block_size, listed=True, everybody=True)
        self.groups = len(tables)
        self.steady = False

    def release(self, sequence: Sequence, computed: int) -> None:
        """Give back what is out of the window of the token after ``computed`` ones.

        Where decisions lag, the tokens of the step before are not computed yet.
        """
        out, gone = self._out(computed - self._in_flight(sequence, computed)), sequence.gone
        if out <= gone:
            return
        for table in self._windowed:
            self._give_back(sequence, table, gone, out)
        sequence.gone = out

    def take(self, sequence: Sequence, computed: int, end: int) -> None:
        """Take the blocks for its tokens from ``computed`` to ``end``; there must be so many."""
        self.release(sequence, computed)
        size = self.block_size
        needed = -(-end // size) - -(-computed // size)
        if needed:
            self.pool.take(needed * self.groups)
        sequence.taken_in, sequence.taken_from = self._decided, computed
        if self._filled:
            self._keep_own(sequence)
        if self.caching and end // size > len(sequence.tables[0]):
            self._fill(sequence, end // size)

    def decode(self, steps: int) -> None:
        """Take and give back blocks for so many beats; there must be so many."""
        for step in range(steps):
            if self.lag and step:
                self.settle()
            for sequence in self._due(step):
                self._beat(sequence, step)
            self._decoded()

    def serve(self, parts: Seq[tuple[Sequence, int]], ghosts: Seq[Sequence]) -> None:
        """Take the blocks of a step; what a ghost gives back those who come after it may take."""
        tokens = dict(parts)
        for sequence in sorted({*self._due(0), *tokens, *ghosts}, key=PLACE):
            if sequence in self.ghosts:
                self.waste(sequence)
            elif sequence.counted:
                self._beat(sequence, 0)
            else:
                self.take(sequence, sequence.computed, sequence.computed + tokens[sequence])
        self._decoded()

    def settle(self) -> None:
        """A step is decided; where that lags, what came of the one before is known only now."""
        super().settle()
        self._decided += 1

    def free(self, sequence: Sequence) -> None:
        """Give back all blocks of a sequence that is counted no longer."""
        count = -(-sequence.computed // self.block_size)
        for table in range(self.groups) if count else ():
            first = sequence.gone if table in self._windowed else 0
            self._give_back(sequence, table, first, count)

    def find(self, sequence: Sequence) -> list[Block]:
        """The blocks it will have if it starts with what the cache has for it.

        All tables must have a prefix; a windowed one only as much of its end as the window reaches.
        """
        self._hit, self._found = 0, [[] for _ in range(self.groups)]
        if not self.caching:
            return []
        if sequence.tokens is None:
            sequence.tokens = OwnTokens(sequence.id)
        most = (sequence.known - 1) // self.block_size
        if len(sequence.keys) < most:
            self._extend_keys(sequence, sequence.tokens, most)
        for table in self._full:
            keys = [_table_key(key, table) for key in sequence.keys[:most]]
            found = self.pool.find(keys)
            self._found[table] += found
            most = len(found)
        self._hit = self._ends_in_window(sequence.keys, most)
        sequence.junction = most * self.block_size if self._full and most > self._hit else 0
        out = self._out(self._hit * self.block_size)
        for table in self._full:
            del self._found[table][self._hit :]
        for table in self._windowed:
            keys = [_table_key(key, table) for key in sequence.keys[out : self._hit]]
            self._found[table] = [*[None] * out, *self.pool.find(keys)]
        return [block for blocks in self._found for block in blocks if block is not None]

    def found_tokens(self, sequence: Sequence, found: list[Block]) -> int:
        """Tokens it has when it starts; it was the last that blocks were looked up for."""
        return self._hit * self.block_size

    def start(
        self, sequence: Sequence, found: list[Block], now_s: float, set_aside: int = 0
    ) -> None:
        """One who waits runs from now on, with what was found last."""
        sequence.tables, sequence.gone = self._found, self._out(self._hit * self.block_size)
        sequence.taken_in, sequence.taken_from = -2, 0  # in no step yet
        super().start(sequence, found, now_s, set_aside)

    def start_blocks(
        self, sequence: Sequence, found: list[Block], most_tokens: int, *, whole: bool
    ) -> int:
        """Free blocks without which it does not start, and compute so many tokens at most.

        ``whole``: and then all of its tokens. Those of the found prefix, which was the last that
        was looked up, are free now if nobody uses them, but not when it has them.
        """
        size, hit = self.block_size, self._hit
        tokens = min(most_tokens, sequence.known - hit * size)
        needed = (-(-(hit * size + tokens) // size) - hit) * self.groups
        if whole:
            end = -(-sequence.known // size)
            windowed = max(0, min(end, self._window_blocks) - hit) * len(self._windowed)
            needed = max(needed, (end - hit) * len(self._full) + windowed)
        return needed + len(found) - schedule.in_use(found)

    def _out(self, computed: int) -> int:
        """Blocks that the window of the token after so many does not reach."""
        return max(0, computed - self._window + 1) // self.block_size if self._windowed else 0

    def _give_back(self, sequence: Sequence, table: int, first: int, end: int) -> None:
        blocks = sequence.tables[table][first:end] if self.caching else ()
        kept = [block for block in blocks if block is not None]
        self.pool.give_back(end - first - len(kept), kept)

    def _beat(self, sequence: Sequence, step: int) -> None:
        computed = self.decoding.computed(sequence) + step
        self.take(sequence, computed, computed + 1)

    def _decoded(self) -> None:
        """All decoding ones have their blocks for a beat."""
        self._new = [*self.decoding.fresh] if self.lag else []
        self.decoding.fresh.clear()
        if self.lag:
            self._keep_filled(served=True)

    def _due(self, step: int) -> Iterable[Sequence]:
        """Those of whose blocks something changes at the given beat from here, in order."""
        decoding = self.decoding
        due = {each: None for each in (*decoding.fresh, *self._new) if each.counted}
        due |= dict.fromkeys(decoding.due(step))
        due |= dict.fromkeys(decoding.due(step + 1 - self.lag - self._window))
        if self.caching:
            due |= dict.fromkeys(decoding.due(step + 1))
        return sorted(due, key=PLACE)

    def _ends_in_window(self, keys: Seq[int], most: int) -> int:
        """Blocks of the longest prefix, up to so many, whose end all windowed tables have."""
        if not self._windowed:
            return most
        run = 0
        for at in range(most - 1, -1, -1):
            if all(self.pool.get(_table_key(keys[at], table)) for table in self._windowed):
                run += 1
                if run >= self._tail:
                    return at + run
            else:
                run = 0
        return run

    def _kept(self, sequence: Sequence) -> int:
        return len(sequence.tables[0])

    def _in_flight(self, sequence: Sequence, computed: int) -> int:
        """Of its computed tokens those of the step under way."""
        if not self.lag:
            return 0
        if sequence.taken_in == self._decided - 1:
            return computed - sequence.taken_from
        return int(sequence.counted or sequence in self.ghosts)

    def _keep(self, sequence: Sequence, count: int) -> None:
        """Let the cache have what it wants of the first ``count`` blocks, which are full."""
        assert sequence.tokens is not None
        if len(sequence.keys) < count:
            self._extend_keys(sequence, sequence.tokens, count)
        ends = [
            tokens // self.block_size for tokens in (sequence.prompt_tokens - 1, sequence.junction)
        ]
        for at in range(len(sequence.tables[0]), count):
            wanted = at >= sequence.gone and any(end - self._tail <= at < end for end in ends)
            for table, blocks in enumerate(sequence.tables):
                key = _table_key(sequence.keys[at], table)
                keeps = wanted or table in self._full
                blocks.append(self.pool.add(key) if keeps else None)


class WindowScheduler(VllmScheduler):
    """vLLM's rules over tables of blocks."""

    def __init__(self, config: CoreConfig, batch: WindowBatch) -> None:
        super().__init__(config, batch)
        self._windows = batch

    def _fits(self, sequence: Sequence, found: list[Block], most_tokens: int) -> bool:
        """Whether there are blocks to start it, at once and to the end of what is known."""
        batch = self._windows
        needed = batch.start_blocks(sequence, found, most_tokens, whole=self._whole)
        if batch.running:
            needed += self._spare_blocks
        return needed <= batch.pool.free


def _table_key(key: int, table: int) -> int:
    return key ^ (table * _TABLE_KEY)
