"""Answers as they are made, for OpenAI's routes: whole, and as server-sent events."""

from collections.abc import Sequence
from typing import Any

from servelab.engine.core.sequences import FinishReason
from servelab.engine.exchange import Response
from servelab.engine.replying import Choice, Reply
from servelab.engine.surfaces import called, events, likely
from servelab.engine.surfaces.sglang import calling, chunks, telling
from servelab.engine.surfaces.sglang.asking import Asked
from servelab.engine.surfaces.sglang.making import Stream, Telling, Whole

CALLED = "tool_calls"  # why an answer ended that called a function


class ChatWhole(Whole):
    """A chat."""

    def response(self) -> Response:
        choices = [self._choice(choice) for choice in self.choices]
        return Response(body=chunks.whole(self.head(events.CHAT), choices, self.counts()))

    def _choice(self, choice: Choice) -> dict[str, Any]:
        top = self.call.logprobs
        count = choice.sent + choice.pending
        reason, matched = choice.reason, telling.matched(choice)
        message: dict[str, Any] = {"role": "assistant", "content": likely.text(choice)}
        made = called.found(choice.text) if self.call.calling else None
        if made is not None:
            name = calling.name(self.names.of(choice.index))
            message |= {"content": "", "tool_calls": [calling.told(name, *made)]}
            if reason == FinishReason.STOP:
                reason, matched = CALLED, None
        message["reasoning_content"] = None
        told: dict[str, Any] = {
            "index": choice.index,
            "message": message,
            "logprobs": None
            if top is None
            else telling.chat_logprobs(likely.tokens(choice, 0, count, top)),
            "finish_reason": reason,
            "matched_stop": matched,
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
        return Response(body=chunks.whole(self.head(events.TEXT), choices, self.counts()))

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


class ChatStream(Stream):
    """A chat: role, texts, and after all of them the reasons of their ends."""

    def __init__(self, asked: Asked, server: Telling) -> None:
        super().__init__(asked, server)
        call = asked.call
        self._plain = call.logprobs is None and not call.continuous_usage
        self._events: list[tuple[bytes, bytes]] = []
        self._ends: list[Choice] = []
        self._last = 0
        self._always = {"role": None} if asked.parsed else {}

    def add(self, choices: Sequence[Choice]) -> None:
        super().add(choices)
        for choice in choices:
            told = chunks.chat_choice(choice.index, {"content": events.MARK} | self._always)
            self._events.append(events.around(self._event(choice, told)))

    def _event(
        self, choice: Choice, told: dict[str, Any], counts: dict[str, Any] | None = None
    ) -> bytes:
        parsed = self.asked.parsed and told["delta"].get("role") is None
        head = self.head_of(choice.index, events.CHAT_CHUNK)
        return chunks.chat_event(head, told, counts, parsed=parsed)

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
        if text:
            self.say(choice, text, parts)

    def say(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        """More of its text."""
        if self._plain:
            before, after = self._events[choice.index]
            parts.append(before + events.quoted(text) + after)
            return
        top, first = self.call.logprobs, self.told[choice.index]
        made = likely.tokens(choice, first, choice.sent - first, top or 0)
        logprobs = None if top is None else telling.chat_logprobs(made)
        told = chunks.chat_choice(choice.index, {"content": text} | self._always, logprobs)
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
        head = self.head_of(self._last, events.CHAT_CHUNK)
        for choice in self._ends:
            told = chunks.chat_choice(
                choice.index, {}, None, self._reason(choice), telling.matched(choice)
            )
            parts.append(chunks.chat_event(head, told))
        if self.call.include_usage:
            parts.append(chunks.usage_event(head, self.total()))
        parts.append(events.DONE)

    def _reason(self, choice: Choice) -> str:
        return choice.reason


class CallStream(ChatStream):
    """A chat that calls a function: its name, then its arguments."""

    def __init__(self, asked: Asked, server: Telling) -> None:
        super().__init__(asked, server)
        self._plain = False
        self._deltas: list[called.Deltas] = []

    def add(self, choices: Sequence[Choice]) -> None:
        super().add(choices)
        self._deltas += [called.Deltas(choice) for choice in choices]

    def say(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        deltas = self._deltas[choice.index]
        was_over, (begins, more) = deltas.over, deltas.after(text)
        if begins:
            name = calling.name(self.names.of(choice.index))
            self._part(choice, calling.told(name, deltas.name, ""), parts)
        if more:
            self._part(choice, calling.told(None, None, more), parts)
        if deltas.over and not was_over:
            # What stands between the call and the mark of its end is text to the real parser.
            self._tell({"content": called.AFTER}, choice, parts)

    def _part(self, choice: Choice, part: dict[str, Any], parts: list[bytes]) -> None:
        self._tell({"content": None, "tool_calls": [part]}, choice, parts)

    def _tell(self, delta: dict[str, Any], choice: Choice, parts: list[bytes]) -> None:
        told = chunks.chat_choice(choice.index, delta | self._always)
        parts.append(self._event(choice, told, self._counts(choice)))

    def _reason(self, choice: Choice) -> str:
        called = choice.reason == FinishReason.STOP and self._deltas[choice.index].begun
        return CALLED if called else choice.reason


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
        parts.append(self.head_of(choice.index, events.TEXT).event([told], counts))

    def finish(self, parts: list[bytes]) -> None:
        self.close(parts)
        if self.call.include_usage:
            head = self.head_of(len(self.choices) - 1, events.TEXT)
            parts.append(chunks.usage_event(head, self.total()))
        parts.append(events.DONE)


def chat(asked: Asked, server: Telling) -> Reply:
    """The answer to a chat."""
    if not asked.call.stream:
        return ChatWhole(asked, server)
    return (CallStream if asked.call.calling else ChatStream)(asked, server)


def completion(asked: Asked, server: Telling) -> Reply:
    """The answer to a text completion."""
    return TextStream(asked, server) if asked.call.stream else TextWhole(asked, server)
