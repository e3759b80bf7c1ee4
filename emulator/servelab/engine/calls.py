"""A checked request, whatever engine it was put to."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from modelserve.errors import ModelServeError
from servelab.engine.text import answers, encoding, thoughts, writing


@dataclass(frozen=True, slots=True)
class Served:
    """What the engine serves: the model's name, and its length in tokens.

    ``options`` are what only this engine has, by its own names.
    """

    name: str
    max_model_tokens: int
    options: tuple[tuple[str, str], ...] = ()

    def has(self, option: str) -> bool:
        """Whether an option was given, and is not ``false``."""
        return dict(self.options).get(option, "false") != "false"


class Prompt(NamedTuple):
    """One prompt: its length, its text where it may be echoed, its ids where it is not text."""

    tokens: int
    text: str = ""
    ids: tuple[int, ...] = ()

    def encoded(self) -> Sequence[int]:
        """Its token ids."""
        return self.ids or encoding.encode(self.text)


class Calling(StrEnum):
    """How a client wants a function called."""

    AUTO = "auto"  # or not, as the model likes
    REQUIRED = "required"
    NAMED = "named"  # a certain one


class Call(NamedTuple):
    """A checked request. ``max_tokens`` None: as many as the model's length leaves."""

    chat: bool
    prompts: tuple[Prompt, ...]
    n: int = 1
    max_tokens: int | None = None
    min_tokens: int = 0
    ignore_eos: bool = False
    stream: bool = False
    include_usage: bool = False
    continuous_usage: bool = False
    echo: bool = False
    prompt_only: bool = False  # echo it, and leave out the token computed for that
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: frozenset[int] = frozenset()
    include_stop: bool = False
    logprobs: int | None = None  # candidates beside the token; -1: all; None: no probabilities
    prompt_logprobs: bool = False
    return_token_ids: bool = False
    prompt_text: bool = False  # the answer tells the prompt
    weight_versions: bool = False  # and by which weights its tokens were made
    stream_interval: int = 1  # tokens of an event
    role: str = "assistant"
    write: writing.Write | None = None  # what the answer must be; None: words
    tells_cached: bool = False  # usage says how much of the prompt was in the prefix cache
    calling: Calling | None = None  # the answer is a call of a function
    priority: int = 0  # of lower ones first, where the engine goes by that
    thinks: thoughts.Thinks | None = None  # before it speaks
    backend: str = ""  # that constrains the answer, by the engine's own name for it
    late: ModelServeError | None = None  # what the engine says once headers are out
    stuck: bool = False  # no token may begin the answer: it fails when the first one is due

    def limit_tokens(self, prompt: Prompt, served: Served) -> int:
        """The most tokens an answer to this prompt may have."""
        room = served.max_model_tokens - prompt.tokens
        return room if self.max_tokens is None else min(room, self.max_tokens)

    def answer(self, seed: int) -> answers.Answer:
        """What one answer says; of the same seed always the same."""
        made: answers.Answer
        if self.write is None:
            made = answers.Words(seed)
        else:
            made = answers.Written(self.write(random.Random(seed)))
        return made if self.thinks is None else self.thinks.before(made, seed)
