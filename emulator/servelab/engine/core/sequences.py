"""What goes into the core and comes out of it: requests, outputs, and the sequence between."""

from collections.abc import Sequence as Seq
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from servelab.engine.core.blocks import Block


class FinishReason(StrEnum):
    """Why a request ended, in the engines' own words."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"


class Tokens(Protocol):
    """The token ids of a prompt and, after them, of its answer."""

    def ids(self, first: int, count: int) -> Seq[int]:
        """So many ids from place ``first`` on; none need exist."""
        ...


@dataclass(frozen=True, slots=True)
class CoreRequest:
    """One sequence to generate.

    ``max_tokens`` is how many tokens it will get; ``reason`` is what it ends with when it has them
    (``length`` at a limit, ``stop`` where the answer ends by itself). ``tokens`` are for the prefix
    cache; without them the request shares no block with another.
    """

    id: str
    prompt_tokens: int
    max_tokens: int
    reason: FinishReason = FinishReason.LENGTH
    tokens: Tokens | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of a request, with its times in emulated seconds; None for what never happened.

    ``cached_tokens`` of its prompt came from the prefix cache.
    """

    id: str
    reason: FinishReason
    at_s: float
    arrived_s: float
    scheduled_s: float | None
    first_token_s: float | None
    last_token_s: float | None
    prompt_tokens: int
    output_tokens: int
    preemptions: int
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class FirstToken:
    """A request's prompt is computed and its first token is out."""

    id: str
    at_s: float
    arrived_s: float
    prompt_tokens: int
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Output:
    """What one step, or a run of equal steps, brought.

    Each request of ``ids`` got one token at each of ``times_s`` (the ends of the steps, ascending).
    ``firsts`` are those of ``ids`` whose first token came at the first of the times; ``finished``
    ended at the last one. ``preempted`` lost their blocks at the start of the step.
    ``prefill_tokens`` were computed in it.
    """

    times_s: tuple[float, ...]
    ids: tuple[str, ...]
    firsts: tuple[FirstToken, ...] = ()
    finished: tuple[Finish, ...] = ()
    preempted: tuple[str, ...] = ()
    prefill_tokens: int = 0


class Sequence:
    """A request inside the core. Of ``known`` tokens, ``computed`` are in its KV blocks.

    It has ``blocks`` of them, of which the first have a key and are ``kept``. ``keys`` are those
    of its full blocks as far as they were asked for. ``cached_tokens`` were found when it first
    started.
    """

    __slots__ = (
        "arrived_s",
        "blocks",
        "cached_tokens",
        "computed",
        "first_token_s",
        "id",
        "kept",
        "keys",
        "known",
        "last_token_s",
        "limit",
        "output_tokens",
        "preemptions",
        "prompt_tokens",
        "reason",
        "scheduled_s",
        "tokens",
    )

    def __init__(self, request: CoreRequest, now_s: float, limit: int) -> None:
        self.id = request.id
        self.prompt_tokens = request.prompt_tokens
        self.reason = request.reason if limit == request.max_tokens else FinishReason.LENGTH
        self.limit = limit
        self.known = request.prompt_tokens
        self.computed = 0
        self.blocks = 0
        self.kept: list[Block] = []
        self.keys: list[int] = []
        self.tokens = request.tokens
        self.cached_tokens = 0
        self.output_tokens = 0
        self.preemptions = 0
        self.arrived_s = now_s
        self.scheduled_s: float | None = None
        self.first_token_s: float | None = None
        self.last_token_s: float | None = None

    @property
    def decoding(self) -> bool:
        """Whether only its newest token is left to compute."""
        return self.known - self.computed == 1 and self.output_tokens > 0

    def finish(self, reason: FinishReason, at_s: float) -> Finish:
        """The record of its end."""
        return Finish(
            self.id,
            reason,
            at_s,
            self.arrived_s,
            self.scheduled_s,
            self.first_token_s,
            self.last_token_s,
            self.prompt_tokens,
            self.output_tokens,
            self.preemptions,
            self.cached_tokens,
        )
