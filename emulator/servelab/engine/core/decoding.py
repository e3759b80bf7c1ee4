"""The decoding sequences of a batch, kept by counting steps instead of visiting each in each step.

A decoding sequence changes with every step, and always in the same way: it has one token more. So
the steps in which all of them get a token, the *beats*, are counted once, and a sequence that joins
leaves behind only what stays true until it goes:

* its ``lead``, the tokens it has computed less the beats so far; with the beats of a later moment
  that gives its tokens then;
* the beat at which it has all its tokens, under which it is found when that comes;
* the residue of its lead modulo the block size: at a beat, all sequences of one residue need a new
  block and no others do, so that a count by residue tells how many blocks a beat takes.

The sum of their tokens grows by their number with each beat. What is left to do at a beat is to
add, to look up who ends, and to take so many blocks; ten beats in a row cost no more than one.
"""

import heapq
from collections.abc import Iterable

from servelab.engine.core.sequences import PLACE, Sequence


class Decoding:
    """All sequences of a batch that get a token at each beat.

    ``context`` is the sum of their known tokens; ``last_beat_s`` is when the last beat ended.
    So many are ``listed``; ``fresh`` are those who joined since somebody took them out, if all are.
    """

    __slots__ = (
        "_block_size",
        "_by_end",
        "_by_slot",
        "_ends",
        "_everybody",
        "_need",
        "beats",
        "context",
        "count",
        "fresh",
        "last_beat_s",
        "listed",
    )

    def __init__(self, block_size: int, *, listed: bool, everybody: bool = False) -> None:
        """``listed``: also tell who with token ids, or ``everybody``, fills a block at a beat."""
        self._everybody = everybody
        self.listed = 0
        self.fresh: list[Sequence] = []
        self.beats = 0
        self.count = 0
        self.context = 0
        self.last_beat_s = 0.0
        self._block_size = block_size
        self._by_end: dict[int, list[Sequence]] = {}
        self._ends: list[int] = []  # a heap of the keys above
        # A sequence needs a block at the beats that are equal to its slot, modulo the block size.
        self._need = [0] * block_size
        self._by_slot: list[dict[Sequence, None]] = [
            {} for _ in range(block_size if listed or everybody else 0)
        ]

    def join(self, sequence: Sequence) -> None:
        """Count a sequence that has but its newest token to compute."""
        beats, known = self.beats, sequence.known
        end = beats + sequence.limit - known + sequence.prompt_tokens
        lead = sequence.computed - beats
        slot = -lead % self._block_size
        sequence.lead, sequence.end_beat, sequence.counted = lead, end, True
        self.count += 1
        self.context += known
        self._need[slot] += 1
        ending = self._by_end.get(end)
        if ending is None:
            self._by_end[end] = [sequence]
            heapq.heappush(self._ends, end)
        else:
            ending.append(sequence)
        if self._by_slot and (sequence.tokens is not None or self._everybody):
            self._by_slot[slot][sequence] = None
            self.listed += 1
            if self._everybody:
                self.fresh.append(sequence)

    def leave(self, sequence: Sequence) -> None:
        """Count it no longer; its own numbers are right again."""
        # Its list may stay empty until its beat comes, which is no harm.
        self._by_end[sequence.end_beat].remove(sequence)
        self._forget(sequence)

    def update(self, sequence: Sequence) -> None:
        """Its own numbers are right until the next beat."""
        computed = sequence.lead + self.beats
        sequence.computed, sequence.known = computed, computed + 1
        before_s = sequence.last_token_s
        if before_s is None or self.last_beat_s > before_s:
            sequence.last_token_s = self.last_beat_s

    def beat(self, steps: int, at_s: float) -> list[Sequence]:
        """So many steps have ended, the last at that time; those with all tokens leave, in order.

        Nobody may end before the last of the steps.
        """
        self.beats += steps
        self.context += steps * self.count
        self.last_beat_s = at_s
        if not self._ends or self._ends[0] > self.beats:
            return []
        ended = self._by_end.pop(heapq.heappop(self._ends))
        if len(ended) > 1:
            ended.sort(key=PLACE)
        for sequence in ended:
            self._forget(sequence)
        return ended

    def beats_to_end(self) -> int:
        """Beats until somebody may have all tokens; there must be somebody."""
        return self._ends[0] - self.beats

    def computed(self, sequence: Sequence) -> int:
        """Tokens that a counted sequence has in its blocks."""
        return sequence.lead + self.beats

    def blocks_needed(self, steps: int) -> int:
        """Blocks that so many beats from here on take."""
        size = self._block_size
        first = self.beats % size
        if steps == 1:
            return self._need[first]
        full, rest = divmod(steps, size)
        need = full * self.count + sum(self._need[first : first + rest])
        return need + sum(self._need[: first + rest - size]) if first + rest > size else need

    def steps_within(self, steps: int, free: int) -> int:
        """How many of the steps can have their blocks if so many are free."""
        if self.blocks_needed(steps) <= free:
            return steps
        size = self._block_size
        full, free = divmod(free, self.count)
        possible = full * size
        while (need := self._need[(self.beats + possible) % size]) <= free:
            free -= need
            possible += 1
        return possible

    def filling(self, step: int) -> list[Sequence]:
        """Those who fill a block at the given beat from here (0 is the next), in order."""
        filling = self.due(step + 1)
        return sorted(filling, key=PLACE) if filling else []

    def due(self, step: int) -> Iterable[Sequence]:
        """Those listed who need a block at the given beat from here, which may be past."""
        return self._by_slot[(self.beats + step) % self._block_size]

    def _forget(self, sequence: Sequence) -> None:
        self.update(sequence)
        sequence.counted = False
        slot = -sequence.lead % self._block_size
        self.count -= 1
        self.context -= sequence.known
        self._need[slot] -= 1
        if self._by_slot and (sequence.tokens is not None or self._everybody):
            del self._by_slot[slot][sequence]
            self.listed -= 1
