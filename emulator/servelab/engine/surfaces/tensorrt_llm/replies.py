"""Answers as they are made: whole, and as server-sent events."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from servelab.engine.exchange import Response
from servelab.engine.replying import Choice, Reply, StreamedReply, WholeReply
from servelab.engine.surfaces import events, fastapi, likely
from servelab.engine.surfaces.events import Completion
from servelab.engine.surfaces.tensorrt_llm import calling, chunks, telling
from servelab.engine.surfaces.tensorrt_llm.asking import Asked


@dataclass(frozen=True, slots=True)
class Telling:
    """Where names and times come from; ``model`` is what the server is called."""

    name: Callable[[], str]
    unix_s: Callable[[], float]
    model: str
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))


class Whole(WholeReply):
    """One JSON document."""

    def __init__(self, asked: Asked, server: Telling) -> None:
        super().__init__(asked.call)
        self.asked = asked
        self.server = server

    def head(self, kind: str, name: str, model: str) -> Completion:
        """What the document begins with."""
        return Completion(kind, name, int(self.server.unix_s()), model)

    def counts(self) -> dict[str, Any]:
        """Usage."""
        return chunks.usage(self.prompt_tokens, self.completion_tokens, self.cached_tokens)


class ChatWhole(Whole):
    """A chat."""

    def response(self) -> Response:
        choices = [self._choice(choice) for choice in self.choices]
        head = self.head(events.CHAT, f"chatcmpl-{self.server.name()}", self.asked.model)
        no_ids = {"prompt_token_ids": None, "prompt_token_ids_b64": None}
        return fastapi.document(head.document(choices, self.counts()) | no_ids)

    def _choice(self, choice: Choice) -> dict[str, Any]:
        top, count = self.call.logprobs, choice.sent + choice.pending
        told = None
        if top is not None:
            told = telling.chat_logprobs(telling.tokens(choice, 0, count, top))
        text, reason = likely.text(choice), choice.reason
        made = calling.whole(self.asked, text)
        calls = []
        if made is not None:
            text, reason = "", calling.end_reason(reason)
            calls.append(calling.told(calling.name(), *made))
        whole = chunks.chat_whole_choice(
            *(choice.index, self.call.role, self.asked.echoed + text, told),
            *(reason, choice.stop_reason, calls),
        )
        if made is not None and self.asked.forced is not None:
            whole["message"]["reasoning_content"] = None
        return whole


class TextWhole(Whole):
    """A text completion. Answers to several prompts go together under the server's own name."""

    def response(self) -> Response:
        several = len(self.call.prompts) > 1
        choices = [self._choice(choice) for choice in self.choices]
        model = self.server.model if several else self.asked.model
        head = self.head(events.TEXT, f"cmpl-{self.server.name()}", model)
        document = head.document(choices, self.counts())
        return fastapi.document(document | {"prompt_token_ids": [] if several else None})

    def _choice(self, choice: Choice) -> dict[str, Any]:
        count = choice.sent + choice.pending
        text = likely.text(choice)
        told, ids = None, None
        if self.call.logprobs is not None:
            told = telling.text_logprobs(
                telling.tokens(choice, 0, count, self.call.logprobs), offset=0
            )
        if self.call.echo:
            text = choice.prompt.text + text
        if not self.asked.detokenize:
            text, ids = "", [token.id for token in telling.tokens(choice, 0, count)]
        event = chunks.text_choice(choice.index, text, ids, told, choice.reason, choice.stop_reason)
        return event | {"context_logits": None, "disaggregated_params": None}


class Stream(StreamedReply):
    """An answer sent as it comes."""

    def __init__(self, asked: Asked, server: Telling) -> None:
        super().__init__(asked.call)
        self.asked = asked
        self.server = server
        self.created = int(server.unix_s())

    def take(self, choice: Choice, piece: str, parts: list[bytes]) -> None:
        silent = choice.ended and likely.ends_silently(choice)
        super().take(choice, "" if silent else piece, parts)


class ChatStream(Stream):
    """A chat: the role of each choice, then texts; the last text has the reason of its end."""

    def __init__(self, asked: Asked, server: Telling) -> None:
        super().__init__(asked, server)
        call = asked.call
        name = f"chatcmpl-{next(server.numbers)}"
        self._head = Completion(events.CHAT_CHUNK, name, self.created, asked.model)
        self._plain = call.logprobs is None and not call.continuous_usage
        self._events: list[tuple[bytes, bytes]] = []

    def add(self, choices: Sequence[Choice]) -> None:
        super().add(choices)
        for choice in choices:
            delta = {"content": events.MARK, "reasoning_content": ""}
            told = chunks.chat_choice(choice.index, delta, decoded=chunks.DECODED_PER_STEP)
            self._events.append(events.around(self._event(told)))

    def _event(
        self, told: dict[str, Any], counts: dict[str, Any] | None = None, blank: bytes = b""
    ) -> bytes:
        event = self._head.document([told], counts)
        document = events.compact(chunks.without_nulls(event))
        return b"data: " + document + blank + b"\n\n"

    def begin(self, parts: list[bytes]) -> None:
        for choice in self.choices:
            deltas = [{"role": self.call.role}]
            if self.asked.echoed:
                deltas.append({"content": self.asked.echoed})
            for delta in deltas:
                told = chunks.chat_choice(choice.index, delta)
                # The real server writes a blank here.
                parts.append(self._event(told, self._counts(choice, 0), b" "))

    def _counts(self, choice: Choice, made: int) -> dict[str, Any] | None:
        if not self.call.continuous_usage:
            return None
        return chunks.usage(choice.prompt.tokens, made, choice.cached_tokens)

    def collect(self, parts: list[bytes]) -> None:
        if len(self.choices) != 1 or not self._plain or self.call.stop:
            super().collect(parts)
            return
        choice = self.choices[0]
        count, first = choice.pending, choice.sent
        choice.pending, choice.sent = 0, first + count
        ended = choice.finished is not None and count > 0
        before, after = self._events[0]
        pieces = choice.answer.quoted(first, count - ended)
        parts += [before + piece + after for piece in pieces]
        if ended:
            choice.ended = True
            silent = likely.ends_silently(choice)
            text = "" if silent else choice.answer.pieces(first + count - 1, 1)[0].decode()
            self.tell(choice, text, parts)

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        if self._plain and not choice.ended:
            before, after = self._events[choice.index]
            parts.append(before + events.quoted(text) + after)
            return
        top, told = self.call.logprobs, None
        if top is not None and choice.sent:
            told = telling.chat_logprobs(telling.tokens(choice, choice.sent - 1, 1, top))
        delta = self.delta(choice, text)
        reason, stop = (None, None)
        if choice.ended:
            reason, stop = self.reason(choice), choice.stop_reason
        event = chunks.chat_choice(choice.index, delta, told, reason, stop, chunks.DECODED_PER_STEP)
        parts.append(self._event(event, self._counts(choice, choice.sent)))

    def delta(self, choice: Choice, text: str) -> dict[str, Any]:
        """What one more text adds to the message."""
        return {"content": text, "reasoning_content": ""}

    def reason(self, choice: Choice) -> str:
        """Why it ended."""
        return choice.reason

    def finish(self, parts: list[bytes]) -> None:
        self.close(parts)
        if self.call.include_usage:
            counts = chunks.usage(self.prompt_tokens, self.completion_tokens, self.cached_tokens)
            parts.append(self._head.event([], counts))
        parts.append(events.DONE)


class CallStream(ChatStream):
    """A chat that calls a function; each token has its event, also where it tells nothing."""

    def __init__(self, asked: Asked, server: Telling) -> None:
        super().__init__(asked, server)
        self._plain = False
        self._deltas: list[calling.Deltas] = []

    def add(self, choices: Sequence[Choice]) -> None:
        super().add(choices)
        self._deltas += [calling.deltas(self.asked, choice) for choice in choices]

    def delta(self, choice: Choice, text: str) -> dict[str, Any]:
        deltas = self._deltas[choice.index]
        begins, more = deltas.after(text)
        forced = self.asked.forced is not None
        parts = []
        if begins:
            first = more if forced else ""
            parts.append(calling.told(calling.name(), deltas.name, first, index=0))
        if more and not (begins and forced):
            parts.append(calling.told(None, None, more, index=0))
        said = {} if forced else super().delta(choice, "")
        return said | ({"tool_calls": parts} if parts else {})

    def reason(self, choice: Choice) -> str:
        begun = self._deltas[choice.index].begun
        return calling.end_reason(choice.reason) if begun else choice.reason


class TextStream(Stream):
    """A text completion. Each prompt is a request of its own, and has its own usage."""

    def __init__(self, asked: Asked, server: Telling) -> None:
        super().__init__(asked, server)
        several = len(asked.call.prompts) > 1
        name = f"cmpl-{server.name() if several else next(server.numbers)}"
        self._head = Completion(events.TEXT, name, self.created, asked.model)
        self._offsets: list[int] = []

    def add(self, choices: Sequence[Choice]) -> None:
        super().add(choices)
        self._offsets += [0] * len(choices)

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        told, ids = None, None
        if self.call.logprobs is not None and choice.sent:
            made = telling.tokens(choice, choice.sent - 1, 1, self.call.logprobs)
            told = telling.text_logprobs(made, self._offsets[choice.index])
        self._offsets[choice.index] += len(text)
        if self.call.echo and choice.sent <= 1:
            text = choice.prompt.text + text
        if not self.asked.detokenize:
            text = ""
            made = telling.tokens(choice, choice.sent - 1, 1) if choice.sent else []
            ids = [token.id for token in made]
        reason, stop = (choice.reason, choice.stop_reason) if choice.ended else (None, None)
        event = chunks.text_choice(choice.index, text, ids, told, reason, stop)
        counts = None
        if self.call.continuous_usage:
            counts = chunks.usage(choice.prompt.tokens, choice.sent, choice.cached_tokens)
        parts.append(self._head.event([event], counts))
        if choice.ended:
            self._ended(choice, parts)

    def _ended(self, choice: Choice, parts: list[bytes]) -> None:
        """Usage, after the last of a prompt's choices."""
        first = choice.index - choice.index % self.call.n
        of_prompt = self.choices[first : first + self.call.n]
        if not self.call.include_usage or not all(each.ended for each in of_prompt):
            return
        made = sum(each.sent for each in of_prompt)
        counts = chunks.usage(choice.prompt.tokens, made, of_prompt[0].cached_tokens)
        parts.append(self._head.event([], counts))

    def finish(self, parts: list[bytes]) -> None:
        self.close(parts)
        parts.append(events.DONE)


def chat(asked: Asked, server: Telling) -> Reply:
    """The answer to a chat."""
    if not asked.call.stream:
        return ChatWhole(asked, server)
    return (CallStream if asked.call.calling else ChatStream)(asked, server)


def completion(asked: Asked, server: Telling) -> Reply:
    """The answer to a text completion."""
    return TextStream(asked, server) if asked.call.stream else TextWhole(asked, server)
