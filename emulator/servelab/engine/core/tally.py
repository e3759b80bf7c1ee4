"""Who is in the core, and what its steps brought until somebody takes it."""

from servelab.engine.core.batch import Batch
from servelab.engine.core.plans import Plan
from servelab.engine.core.sequences import (
    PLACE,
    Finish,
    FinishReason,
    FirstToken,
    Output,
    Sequence,
)


class Tally:
    """Requests by id that have not ended, and outputs in order.

    Those who are cancelled have ended, whatever the scheduler still computes of them.
    """

    __slots__ = ("_batch", "_ids", "alive", "outputs")

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self.alive: dict[str, Sequence] = {}
        self.outputs: list[Output] = []
        self._ids: tuple[str, ...] | None = None  # of the batch, until it changes

    def take(self) -> list[Output]:
        """What came about since the last time."""
        outputs, self.outputs = self.outputs, []
        return outputs

    def regroup(self) -> None:
        """Others run than before."""
        self._ids = None

    def cancel(self, request_id: str, at_s: float) -> Sequence | None:
        """End a request; the batch knows nothing of that yet. None if nobody has that id."""
        sequence = self.alive.pop(request_id, None)
        if sequence is not None:
            if sequence.counted:
                self._batch.decoding.update(sequence)
            finish = sequence.finish(FinishReason.ABORT, at_s)
            self.outputs.append(Output((), (), finished=(finish,)))
            self._ids = None
        return sequence

    def beats(self, ends_s: list[float]) -> bool:
        """Count steps in which all decode, and nobody ended before the last; whether any did."""
        at_s, ids = ends_s[-1], self._decoded_ids()
        ended = self._batch.decoding.beat(len(ends_s), at_s)
        finished = self._leave(ended, at_s) if ended else ()
        output = (tuple(ends_s), ids, (), finished, (), 0)
        self.outputs.append(tuple.__new__(Output, output))
        return bool(finished)

    def step(self, plan: Plan) -> bool:
        """Count a step, after which those with all their tokens leave; whether any did."""
        batch, at_s = self._batch, plan.end_s
        ended = batch.decoding.beat(1, at_s) if plan.beat else []
        firsts: list[FirstToken] = []
        if plan.parts:
            ids, done = self._compute(plan, at_s, firsts)
            if done:
                ended += done
                ended.sort(key=PLACE)
        else:
            ids = self._decoded_ids()
        if batch.leaving:
            gone = {sequence.id for sequence in batch.leaving}
            ids = tuple([name for name in ids if name not in gone])
            ended = self._told(ended)
            self._ids = None
        finished = self._leave(ended, at_s) if ended else ()
        preempted: tuple[str, ...] = ()
        if plan.preempted:
            alive = self.alive
            preempted = tuple([each.id for each in plan.preempted if alive.get(each.id) is each])
        output = ((at_s,), ids, tuple(firsts), finished, preempted, plan.prefill_tokens)
        self.outputs.append(tuple.__new__(Output, output))
        return bool(finished)

    def _compute(
        self, plan: Plan, at_s: float, firsts: list[FirstToken]
    ) -> tuple[tuple[str, ...], list[Sequence]]:
        """Count what a step computed of single sequences; who got a token, and who has all now."""
        batch = self._batch
        running, join = batch.running, batch.decoding.join
        ids: list[str] = []
        done: list[Sequence] = []
        for sequence, tokens in plan.parts:
            sequence.computed += tokens
            known = sequence.known
            if sequence.computed < known or running.get(sequence.id) is not sequence:
                continue
            sequence.known = known + 1
            sequence.last_token_s = at_s
            ids.append(sequence.id)
            if sequence.first_token_s is None and sequence not in batch.leaving:
                sequence.first_token_s = at_s
                first = (
                    sequence.id,
                    at_s,
                    sequence.arrived_s,
                    sequence.prompt_tokens,
                    sequence.cached_tokens,
                )
                firsts.append(tuple.__new__(FirstToken, first))
            if known + 1 - sequence.prompt_tokens < sequence.limit:
                join(sequence)
            else:
                done.append(sequence)
        if len(ids) == len(batch.partial) and not batch.leaving:
            batch.partial = []  # all have computed what they had to
        else:
            batch.partial = [each for each in batch.partial if not (each.counted or each in done)]
        return (self._decoded_ids() if plan.beat else tuple(ids)), done

    def _decoded_ids(self) -> tuple[str, ...]:
        """Who got a token in a beat: all but those with more to compute."""
        batch, ids = self._batch, self._ids
        if batch.partial:
            left = {sequence.id for sequence in batch.partial}
            return tuple([name for name in batch.running if name not in left])
        if ids is None:
            ids = self._ids = tuple(batch.running)
        return ids

    def _told(self, ended: list[Sequence]) -> list[Sequence]:
        """Those of whose end nobody knows; the others only leave the batch, or will."""
        leaving, ghosts = self._batch.leaving, self._batch.ghosts
        if self._batch.lag:
            for sequence in ended:
                if sequence in leaving:
                    del leaving[sequence]
                    ghosts[sequence] = None
        return [each for each in ended if each not in leaving and each not in ghosts]

    def _leave(self, ended: list[Sequence], at_s: float) -> tuple[Finish, ...]:
        """Those with all their tokens go, in the batch's order."""
        batch, alive = self._batch, self.alive
        for sequence in ended:
            del alive[sequence.id]
            batch.ghosts[sequence] = None
        if not batch.lag:
            batch.bury()
        self._ids = None
        return tuple([sequence.finish(sequence.reason, at_s) for sequence in ended])
