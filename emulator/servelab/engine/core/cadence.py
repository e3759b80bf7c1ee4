"""vLLM's ``--prefill-schedule-interval``: prompts are computed in one of so many steps alone.

Between two steps with prompts others decode undisturbed; a prompt that is begun pauses as well. It
does not wait if nobody decodes, nor while a step that could take prompts has left somebody waiting.
"""

from servelab.engine.core.batch import Batch
from servelab.engine.core.plans import Plan
from servelab.engine.core.sequences import Sequence


class Cadence:
    """When prompts were last computed, in steps that computed anything."""

    __slots__ = ("_batch", "_beats", "_begun", "_carries", "_crowded", "_interval", "_last", "_ran")

    def __init__(self, interval: int, batch: Batch) -> None:
        self._interval = interval
        self._batch = batch
        self._begun: set[Sequence] = set()  # of the partial ones those whose prompt is not done
        self._crowded = False  # the last step that could take prompts left somebody waiting
        self._carries = False  # the step that is being decided computes a prompt that was begun
        self._ran = 0  # steps
        self._last = -interval
        self._beats = 0  # of the batch at the last decision

    @property
    def jumps(self) -> bool:
        """Whether steps that only decode leave it as it is."""
        return not (self._crowded or self._batch.waiting)

    def begin(self) -> bool:
        """A step is decided: whether prompts wait in it."""
        batch = self._batch
        self._ran += max(0, batch.decoding.beats - self._beats - 1)  # those in between
        self._beats = batch.decoding.beats
        self._begun.intersection_update(batch.partial)
        self._carries = False
        soon = self._ran + 1 - self._last < self._interval
        return soon and not self._crowded and len(batch.running) > len(self._begun)

    def begun(self, sequence: Sequence) -> bool:
        """Whether that one's prompt is begun and not done."""
        return sequence in self._begun

    def serve(self, sequence: Sequence) -> None:
        """The step computes something of one that runs."""
        self._carries = self._carries or sequence in self._begun

    def end(self, plan: Plan, crowded: bool | None) -> None:
        """It is decided. ``crowded``: somebody waits still who could have started in it.

        None if it looked at nobody.
        """
        if crowded is not None:
            self._crowded = crowded
        self._ran += bool(plan.parts or plan.wasted or self._batch.decoding.count)
        for sequence, _ in plan.parts:
            self.serve(sequence)
        if self._carries or any(had < each.known - 1 for each, had in plan.started):
            self._last = self._ran
        for sequence, tokens in plan.parts:
            if sequence.computed + tokens < sequence.known:
                self._begun.add(sequence)
            else:
                self._begun.discard(sequence)
