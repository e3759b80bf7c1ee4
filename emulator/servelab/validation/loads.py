"""Drives an engine core through a load on virtual time: closed loop, all at once, open loop.

``lengths`` are prompt and answer tokens of each request; times are seconds.
"""

import random
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from servelab.engine.core.sequences import CoreRequest, Finish, Output
from servelab.engine.core.stepping import EngineCore

Lengths = Sequence[tuple[int, int]]

# Past the end of any run: all work is done before it.
FOR_EVER_S = 1e9


@dataclass(frozen=True, slots=True)
class Seen:
    """What a client would have measured, request by request."""

    finishes: tuple[Finish, ...]

    @property
    def end_s(self) -> float:
        """When the last request ended; the first came at 0."""
        return max(finish.at_s for finish in self.finishes)

    @property
    def output_tokens_per_s(self) -> float:
        """Of the whole instance, over the whole run."""
        return sum(finish.output_tokens for finish in self.finishes) / self.end_s

    def first_tokens_s(self) -> list[float]:
        """Time to first token of each request."""
        return [
            finish.first_token_s - finish.arrived_s
            for finish in self.finishes
            if finish.first_token_s is not None
        ]

    def per_token_s(self) -> list[float]:
        """Mean time between the tokens of each answer of more than one."""
        return [
            (finish.last_token_s - finish.first_token_s) / (finish.output_tokens - 1)
            for finish in self.finishes
            if finish.first_token_s is not None
            and finish.last_token_s is not None
            and finish.output_tokens > 1
        ]


def at_once(core: EngineCore, lengths: Lengths) -> Seen:
    """All requests come at 0."""
    for request in _requests(lengths):
        core.submit(request, 0.0)
    return Seen(_finished(core.advance(FOR_EVER_S)))


def open_loop(core: EngineCore, lengths: Lengths, per_s: float, rng: random.Random) -> Seen:
    """Requests come as a Poisson process, whatever the engine does."""
    now_s = 0.0
    for request in _requests(lengths):
        core.submit(request, now_s)
        now_s += rng.expovariate(per_s)
    return Seen(_finished(core.advance(FOR_EVER_S)))


def closed_loop(core: EngineCore, lengths: Lengths, clients: int) -> Seen:
    """Each client sends its next request when it has the answer to the one before.

    All start at 0, as a benchmark's clients do.
    """
    if clients == 1:
        return _one_by_one(core, lengths)
    queue = deque(_requests(lengths))
    for _ in range(min(clients, len(queue))):
        core.submit(queue.popleft(), 0.0)
    finishes: list[Finish] = []
    while (wake_s := core.next_wake()) is not None:
        for finish in _finished(core.advance(wake_s)):
            finishes.append(finish)
            if queue:
                core.submit(queue.popleft(), finish.at_s)
    return Seen(tuple(finishes))


def _one_by_one(core: EngineCore, lengths: Lengths) -> Seen:
    """A closed loop of one, which needs no look at every step."""
    finishes: list[Finish] = []
    for at, request in enumerate(_requests(lengths)):
        core.submit(request, at * FOR_EVER_S)
        finishes += _finished(core.advance((at + 0.5) * FOR_EVER_S))
    return Seen(tuple(finishes))


def _requests(lengths: Lengths) -> Iterable[CoreRequest]:
    for at, (prompt_tokens, answer_tokens) in enumerate(lengths):
        yield CoreRequest(str(at), prompt_tokens, answer_tokens)


def _finished(outputs: Iterable[Output]) -> tuple[Finish, ...]:
    return tuple(finish for output in outputs for finish in output.finished)
