"""Answers in the making, as all of SGLang's routes have them: names, counts, held stops."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from servelab.engine.exchange import Exchange
from servelab.engine.replying import Choice, StreamedReply, WholeReply
from servelab.engine.surfaces import likely
from servelab.engine.surfaces.events import Completion
from servelab.engine.surfaces.sglang import chunks, telling
from servelab.engine.surfaces.sglang.asking import Asked

_ALL = 1 << 30


@dataclass(frozen=True, slots=True)
class Telling:
    """What the server is set to tell, and where names and times come from.

    ``taken`` is told which of the core's requests stream.
    """

    name: Callable[[], str]
    unix_s: Callable[[], float]
    taken: Callable[[Sequence[str], bool], None] = lambda ids, stream: None
    cache_report: bool = False
    measured: bool = False


class Named:
    """Names of the choices: the client's, or new ones."""

    def __init__(self, asked: Asked, server: Telling) -> None:
        self._asked = asked
        self._server = server
        self._names: list[str] = []

    def of(self, index: int) -> str:
        """The name of a choice."""
        rids = self._asked.rids
        while len(self._names) <= index:
            place = len(self._names)
            prompts = len(self._asked.call.prompts)
            given = rids[place] if self._asked.call.n == 1 and place < len(rids) else None
            if given is not None and len(rids) == 1 and prompts > 1:
                given = f"{given}_{place}"
            self._names.append(given or self._server.name())
        return self._names[index]


class Whole(WholeReply):
    """One JSON document."""

    def __init__(self, asked: Asked, server: Telling) -> None:
        super().__init__(asked.call)
        self.asked = asked
        self.server = server
        self.names = Named(asked, server)

    def open(self, exchange: Exchange) -> None:
        self.server.taken(self.ids, False)
        super().open(exchange)

    def head(self, kind: str) -> Completion:
        """What the document begins with."""
        created = int(self.server.unix_s())
        return Completion(kind, self.names.of(0), created, self.asked.model)

    def counts(self) -> dict[str, Any]:
        """Usage."""
        cached = self.cached_tokens if self.server.cache_report else None
        return chunks.usage(telling.prompt_tokens(self), self.completion_tokens, cached)


class Stream(StreamedReply):
    """An answer sent as it comes, but for what may be the beginning of a stop."""

    def __init__(self, asked: Asked, server: Telling) -> None:
        super().__init__(asked.call)
        self.asked = asked
        self.server = server
        self.names = Named(asked, server)
        self.created = int(server.unix_s())
        self.told: list[int] = []  # tokens of each choice that were told
        self._tails: list[str] = []

    def add(self, choices: Sequence[Choice]) -> None:
        super().add(choices)
        self.told += [0] * len(choices)
        self._tails += [""] * len(choices)

    def open(self, exchange: Exchange) -> None:
        self.server.taken(self.ids, True)
        super().open(exchange)

    def head_of(self, index: int, kind: str) -> Completion:
        """What an event of a choice begins with."""
        return Completion(kind, self.names.of(index), self.created, self.asked.model)

    def take(self, choice: Choice, piece: str, parts: list[bytes]) -> None:
        if choice.ended and likely.ends_silently(choice):
            piece = ""
        held = not choice.ended and self._may_stop(choice, piece)
        text = choice.delta(piece, _ALL if held else 0, ended=choice.ended)
        if not held:
            self.tell(choice, text, parts)
            self.told[choice.index] = choice.sent

    def _may_stop(self, choice: Choice, piece: str) -> bool:
        """Whether the text ends with the beginning of a stop: it is kept back then."""
        stops = self.call.stop
        if not stops:
            return False
        longest = max(map(len, stops))
        tail = (self._tails[choice.index] + piece)[-longest:]
        self._tails[choice.index] = tail
        return any(
            tail.endswith(stop[:length])
            for stop in stops
            for length in range(1, min(len(stop), len(tail)) + 1)
        )

    @abstractmethod
    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        """Tokens ``told`` … ``sent`` of a choice, and their text."""

    def total(self) -> dict[str, Any]:
        """Usage of all choices."""
        cached = self.cached_tokens if self.server.cache_report else None
        return chunks.usage(telling.prompt_tokens(self), self.completion_tokens, cached)


def name(choice: Choice) -> str:
    """By what name a client may abort it."""
    reply = choice.reply
    return reply.names.of(choice.index) if isinstance(reply, Whole | Stream) else ""
