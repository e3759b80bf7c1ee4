"""The KV blocks of one engine and what they remember: vLLM's block pool with its prefix cache.

A full block of tokens has a key, made of its tokens and the key of the block before it. A block
that is given back keeps its content until it is taken again: blocks without a key are taken first,
then those with one, the longest unused first. Only blocks with a key are objects; the others are
all alike and only counted. So are those of a sequence whose tokens nobody knows: no other can find
them, and they make one chain.
"""

from collections import OrderedDict
from collections.abc import Sequence as Seq


def needed(computed: int, end: int, size: int) -> int:
    """Blocks of ``size`` that tokens from ``computed`` to ``end`` need, beside those before."""
    return -(-end // size) - -(-computed // size)


class Block:
    """A full block with a key; without users it may be taken."""

    __slots__ = ("key", "users")

    def __init__(self, key: int) -> None:
        self.key = key
        self.users = 1


class Chain:
    """So many full blocks from a sequence's beginning on, which only that sequence can find."""

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        self.count = count


class BlockPool:
    """So many blocks; ``free`` of them have no users. ``shared`` counts users beside the first."""

    __slots__ = ("_blank", "_by_key", "_unused", "free", "shared", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.free = size
        self.shared = 0
        self._blank = size  # free ones without a key
        self._unused: OrderedDict[Block | Chain, None] = OrderedDict()  # the oldest first
        # Equal blocks may exist more than once; the one that came first is found.
        self._by_key: dict[int, Block | list[Block]] = {}

    def take(self, count: int) -> None:
        """Take free blocks; there must be so many. What the oldest held is forgotten."""
        self.free -= count
        self._blank -= count
        while self._blank < 0:
            oldest = next(iter(self._unused))
            forgotten = 1
            if isinstance(oldest, Block):
                self._forget(oldest)
            else:
                forgotten = min(oldest.count, -self._blank)
                oldest.count -= forgotten
            self._blank += forgotten
            if isinstance(oldest, Block) or not oldest.count:
                del self._unused[oldest]

    def give_back(self, blank: int, kept: Seq[Block]) -> None:
        """Give back blocks without a key, and some with one, the last to be forgotten first."""
        self.free += blank
        self._blank += blank
        unused = self._unused
        for block in reversed(kept):
            if block.users == 1:
                block.users = 0
                unused[block] = None
                self.free += 1
            else:
                block.users -= 1
                self.shared -= 1

    def give_back_chain(self, chain: Chain) -> None:
        """Give back a chain, its end to be forgotten first."""
        self._unused[chain] = None
        self.free += chain.count

    def use_chain(self, chain: Chain) -> None:
        """Use again what is left of a chain that was given back."""
        if chain.count:
            del self._unused[chain]
            self.free -= chain.count

    def add(self, key: int) -> Block:
        """Give a key to a block that was taken without one."""
        block = Block(key)
        found = self._by_key.setdefault(key, block)
        if found is not block:
            if isinstance(found, Block):
                self._by_key[key] = [found, block]
            else:
                found.append(block)
        return block

    def get(self, key: int) -> Block | None:
        """The block with that key, of several the first."""
        found = self._by_key.get(key)
        return found[0] if isinstance(found, list) else found

    def find(self, keys: Seq[int]) -> list[Block]:
        """The blocks that are there for the first of the keys, up to the first that is missing."""
        blocks: list[Block] = []
        for key in keys:
            found = self._by_key.get(key)
            if found is None:
                break
            blocks.append(found if isinstance(found, Block) else found[0])
        return blocks

    def use(self, blocks: Seq[Block]) -> None:
        """Add a user to each of the blocks."""
        for block in blocks:
            if block.users:
                self.shared += 1
            else:
                del self._unused[block]
                self.free -= 1
            block.users += 1

    def forget(self) -> None:
        """Forget what all free blocks hold."""
        for unused in self._unused:
            if isinstance(unused, Block):
                self._forget(unused)
                self._blank += 1
            else:
                self._blank += unused.count
                unused.count = 0
        self._unused.clear()

    def _forget(self, block: Block) -> None:
        found = self._by_key[block.key]
        if isinstance(found, Block):
            del self._by_key[block.key]
            return
        found.remove(block)
        if len(found) == 1:
            self._by_key[block.key] = found[0]


def extend_keys(keys: list[int], tokens: Seq[int], block_size: int) -> None:
    """Append the keys of the full blocks of these tokens, which follow those that have keys."""
    before = keys[-1] if keys else 0
    if len(tokens) == block_size:
        keys.append(hash((before, tuple(tokens))))
        return
    for start in range(0, len(tokens) - block_size + 1, block_size):
        before = hash((before, tuple(tokens[start : start + block_size])))
        keys.append(before)
