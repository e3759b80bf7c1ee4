"""What a step computes, and what the core asks of the rules that decide it."""

from typing import Protocol

from servelab.engine.core.sequences import Sequence


class Plan:
    """What a step computes, and when it ends.

    ``parts`` are tokens by sequence, in order; ``beat`` is whether each decoding sequence gets its
    token besides. ``preempted`` lost their blocks for it; ``started`` are those that begin or
    begin again, with their tokens from the prefix cache. ``wasted`` are sequences that have ended,
    which the scheduler did not know.
    """

    __slots__ = ("beat", "end_s", "parts", "preempted", "prefill_tokens", "started", "wasted")

    def __init__(self) -> None:
        self.parts: list[tuple[Sequence, int]] = []
        self.beat = True
        self.preempted: list[Sequence] = []
        self.started: list[tuple[Sequence, int]] = []
        self.wasted: list[Sequence] = []
        self.end_s = 0.0
        self.prefill_tokens = 0


class Scheduler(Protocol):
    """The rules by which an engine decides."""

    def plan(self, now_s: float) -> Plan:
        """Decide the next step and take the blocks it needs."""
        ...

    def ready_s(self) -> float:
        """From when on a waiting sequence might start if the batch stays as it is, or inf."""
        ...

    def beats(self) -> int:
        """Steps from here on that are nothing but a beat, with blocks enough, if nobody starts."""
        ...
