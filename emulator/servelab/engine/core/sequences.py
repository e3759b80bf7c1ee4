"""What goes into the core and comes out of it: requests, outputs, and the sequence between.

What passes in and out are named tuples, because of the immutable types they are made fastest.
"""

import operator
from collections.abc import Sequence as Seq
from enum import StrEnum
from typing import NamedTuple, Protocol

from servelab.engine.core.blocks import Block, Chain


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


class CoreRequest(NamedTuple):
    """One sequence to generate.

    ``max_tokens`` is how many tokens it will get; ``reason`` is what it ends with when it has them
    (``length`` at a limit, ``stop`` where the answer ends by itself). ``tokens`` are for the prefix
    cache; without them the request shares no block with another. ``allowed_tokens`` is how many it
    may get for all that the engine knows before, if that is more: what admission reckons with.
    Of lower ``priority`` is served first, where an engine goes by that. One of ``fixed_length``
    is known not to end by itself.
    """

    id: str
    prompt_tokens: int
    max_tokens: int
    reason: FinishReason = FinishReason.LENGTH
    tokens: Tokens | None = None
    allowed_tokens: int = 0
    priority: int = 0
    fixed_length: bool = False


class Finish(NamedTuple):
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


class FirstToken(NamedTuple):
    """A request's prompt is computed and its first token is out."""

    id: str
    at_s: float
    arrived_s: float
    prompt_tokens: int
    cached_tokens: int = 0


class Output(NamedTuple):
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

    While it is ``counted`` (see ``decoding``) both stand still, and ``lead`` says what they are.
    ``kept`` are its blocks with a key; ``keys`` those of its full blocks as far as they were asked
    for; ``chain`` are the blocks that one without token ids gave back. ``cached_tokens`` were found
    when it first started. ``place`` is its place in the batch. It gets ``limit`` tokens; for those
    that it is ``allowed`` a scheduler may hold ``set_aside`` blocks ready.

    Where layers have windows it has ``tables`` of blocks, of which the first ``gone`` are out of
    the window (see ``windows``); others' prompts are like its own up to the ``junction``. It last
    took blocks in step ``taken_in`` for the tokens from ``taken_from`` on.
    """

    # Set when it starts, and only where layers have windows.
    tables: list[list[Block | None]]
    gone: int
    junction: int
    taken_in: int
    taken_from: int

    __slots__ = (
        "allowed",
        "arrived_s",
        "cached_tokens",
        "chain",
        "computed",
        "counted",
        "end_beat",
        "first_token_s",
        "fixed_length",
        "gone",
        "id",
        "junction",
        "kept",
        "keys",
        "known",
        "last_token_s",
        "lead",
        "limit",
        "place",
        "preemptions",
        "priority",
        "prompt_tokens",
        "reason",
        "scheduled_s",
        "set_aside",
        "tables",
        "taken_from",
        "taken_in",
        "tokens",
    )

    def __init__(self, request: CoreRequest, now_s: float, limit: int) -> None:
        (
            self.id,
            self.prompt_tokens,
            max_tokens,
            self.reason,
            self.tokens,
            allowed,
            self.priority,
            self.fixed_length,
        ) = request
        if limit != max_tokens:
            self.reason = FinishReason.LENGTH
        self.allowed = allowed if allowed > limit else limit
        self.limit = limit
        self.known = self.prompt_tokens
        self.arrived_s = now_s
        self.computed = self.cached_tokens = self.preemptions = self.place = 0
        self.set_aside = 0
        self.counted = False
        self.lead = self.end_beat = 0
        self.kept: list[Block] = []
        self.keys: list[int] = []
        self.chain: Chain | None = None
        self.scheduled_s: float | None = None
        self.first_token_s: float | None = None
        self.last_token_s: float | None = None

    @property
    def output_tokens(self) -> int:
        """Tokens of the answer so far."""
        return self.known - self.prompt_tokens

    @property
    def decoding(self) -> bool:
        """Whether only its newest token is left to compute."""
        return self.known - self.computed == 1 and self.known > self.prompt_tokens

    def finish(self, reason: FinishReason, at_s: float) -> Finish:
        """The record of its end."""
        return tuple.__new__(
            Finish,
            (
                self.id,
                reason,
                at_s,
                self.arrived_s,
                self.scheduled_s,
                self.first_token_s,
                self.last_token_s,
                self.prompt_tokens,
                self.known - self.prompt_tokens,
                self.preemptions,
                self.cached_tokens,
            ),
        )


# In the batch's order; in that of a queue by priority; of the batch the last one of that order.
PLACE = operator.attrgetter("place")
TURN = operator.attrgetter("priority", "arrived_s", "id")
RANK = operator.attrgetter("priority", "arrived_s")
