"""Answers as they are made, for OpenAI's routes: whole, and as server-sent events."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from servelab.engine.exchange import Exchange, Response
from servelab.engine.replying import Choice, Reply, StreamedReply, WholeReply
from servelab.engine.surfaces import events, likely
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

    def counts(self) -> dict[str, Any]:
        """Usage."""
        cached = self.cached_tokens if self.server.cache_report else None
        return chunks.usage(self.prompt_tokens, self.completion_tokens, cached)


class ChatWhole(Whole):
    """A chat."""

    def response(self) -> Response:
        choices = [self._choice(choice) for choice in self.choices]
        created = int(self.server.unix_s())
        name, model = self.names.of(0), self.asked.model
        return Response(body=chunks.chat_whole(name, created, model, choices, self.counts()))

    def _choice(self, choice: Choice) -> dict[str, Any]:
        top = self.call.logprobs
        count = choice.sent + choice.pending
        message = {"role": "assistant", "content": likely.text(choice), "reasoning_content": None}
        told: dict[str, Any] = {
            "index": choice.index,
            "message": message,
            "logprobs": None
            if top is None
            else telling.chat_logprobs(likely.tokens(choice, 0, count, top)),
            "finish_reason": choice.reason,
            "matched_stop": telling.matched(choice),
        }
        if self.asked.prompt_ids:
            told["prompt_token_ids"] = choice.prompt.encoded()
        if self.call.return_token_ids:
            told["response_token_ids"] = [t.id for t in likely.tokens(choice, 0, count)]
        if self.asked.meta_info:
            now = self.server.unix_s()
            times = telling.times(choice.finished, now, now, measured=self.server.measured)
            told["meta_info"] = telling.meta(self.names.of(choice.index), choice, count, {}, times)
        return told


class TextWhole(Whole):
    """A text completion."""

    def response(self) -> Response:
        choices = [self._choice(choice) for choice in self.choices]
        created = int(self.server.unix_s())
        name, model = self.names.of(0), self.asked.model
        return Response(body=chunks.text_whole(name, created, model, choices, self.counts()))

    def _choice(self, choice: Choice) -> dict[str, Any]:
        count = choice.sent + choice.pending
        text = likely.text(choice)
        ids = choice.prompt.encoded() if self.asked.prompt_ids else None
        return chunks.text_choice(
            choice.index,
            choice.prompt.text + text if self.call.echo else text,
            logprobs(self, choice, 0, count),
            choice.reason,
            telling.matched(choice),
            [token.id for token in likely.tokens(choice, 0, count)]
            if self.call.return_token_ids
            else None,
            ids,
        )


def logprobs(reply: Reply, choice: Choice, first: int, count: int) -> dict[str, Any] | None:
    """Of a text completion's tokens, if they were asked for; with an echo also the prompt's."""
    call = reply.call
    if call.logprobs is None:
        return None
    echoed = choice.prompt.encoded() if call.echo and call.logprobs and not first else None
    return telling.text_logprobs(likely.tokens(choice, first, count, call.logprobs), echoed)


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
        return chunks.usage(self.prompt_tokens, self.completion_tokens, cached)


class ChatStream(Stream):
    """A chat: role, texts, and after all of them the reasons of their ends."""

    def __init__(self, asked: Asked, server: Telling) -> None:
        super().__init__(asked, server)
        call = asked.call
        self._plain = call.logprobs is None and not call.continuous_usage
        self._events: list[tuple[bytes, bytes]] = []
        self._ends: list[Choice] = []
        self._last = 0

    def add(self, choices: Sequence[Choice]) -> None:
        super().add(choices)
        for choice in choices:
            told = chunks.chat_choice(choice.index, {"content": events.MARK})
            self._events.append(events.around(self._event(choice, told)))

    def _event(
        self, choice: Choice, told: dict[str, Any], counts: dict[str, Any] | None = None
    ) -> bytes:
        name = self.names.of(choice.index)
        return chunks.chat_event(name, self.created, self.asked.model, told, counts)

    def _role(self, choice: Choice, parts: list[bytes]) -> None:
        delta = {"role": "assistant", "content": ""}
        parts.append(self._event(choice, chunks.chat_choice(choice.index, delta)))

    def collect(self, parts: list[bytes]) -> None:
        if len(self.choices) != 1 or not self._plain or self.call.stop:
            super().collect(parts)
            return
        choice = self.choices[0]
        count, first = choice.pending, choice.sent
        if not count:
            return
        if first == 0:
            self._role(choice, parts)
        choice.pending, choice.sent = 0, first + count
        choice.ended = choice.finished is not None
        if choice.ended:
            self._ends.append(choice)
        count -= likely.ends_silently(choice)
        before, after = self._events[0]
        parts += [before + piece + after for piece in choice.answer.quoted(first, count)]

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        self._last = choice.index
        first = self.told[choice.index]
        if first == 0:
            self._role(choice, parts)
        if choice.ended:
            self._ends.append(choice)
        if not text:
            return
        if self._plain:
            before, after = self._events[choice.index]
            parts.append(before + events.quoted(text) + after)
            return
        top = self.call.logprobs
        made = likely.tokens(choice, first, choice.sent - first, top or 0)
        logprobs = None if top is None else telling.chat_logprobs(made)
        told = chunks.chat_choice(choice.index, {"content": text}, logprobs)
        parts.append(self._event(choice, told, self._counts(choice)))

    def _counts(self, choice: Choice) -> dict[str, Any] | None:
        if not self.call.continuous_usage:
            return None
        cached = choice.cached_tokens if self.server.cache_report else None
        return chunks.usage(choice.prompt.tokens, choice.sent, cached)

    def finish(self, parts: list[bytes]) -> None:
        for choice in self.choices:
            if not choice.ended:
                if not choice.sent:
                    self._role(choice, parts)
                self._ends.append(choice)
        name = self.names.of(self._last)
        for choice in self._ends:
            told = chunks.chat_choice(
                choice.index, {}, None, choice.reason, telling.matched(choice)
            )
            parts.append(chunks.chat_event(name, self.created, self.asked.model, told))
        if self.call.include_usage:
            model = self.asked.model
            parts.append(chunks.chat_usage(name, self.created, model, self.total()))
        parts.append(events.DONE)


class TextStream(Stream):
    """A text completion: the last text and the reason of its end come together."""

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        first = self.told[choice.index]
        if self.call.echo and first == 0:
            text = choice.prompt.text + text
        made = choice.sent - first
        ids = likely.tokens(choice, first, made) if self.call.return_token_ids else None
        told = chunks.text_choice(
            choice.index,
            text,
            logprobs(self, choice, first, made),
            choice.reason if choice.ended else None,
            telling.matched(choice) if choice.ended else None,
            None if ids is None else [token.id for token in ids],
            choice.prompt.encoded() if self.asked.prompt_ids and first == 0 else None,
        )
        counts = None
        if self.call.continuous_usage:
            counts = chunks.usage(choice.prompt.tokens, choice.sent, None)
        name = self.names.of(choice.index)
        parts.append(chunks.text_event(name, self.created, self.asked.model, told, counts))

    def finish(self, parts: list[bytes]) -> None:
        self.close(parts)
        if self.call.include_usage:
            name, model = self.names.of(len(self.choices) - 1), self.asked.model
            parts.append(chunks.text_usage(name, self.created, model, self.total()))
        parts.append(events.DONE)


def chat(asked: Asked, server: Telling) -> Reply:
    """The answer to a chat."""
    return ChatStream(asked, server) if asked.call.stream else ChatWhole(asked, server)


def completion(asked: Asked, server: Telling) -> Reply:
    """The answer to a text completion."""
    return TextStream(asked, server) if asked.call.stream else TextWhole(asked, server)
