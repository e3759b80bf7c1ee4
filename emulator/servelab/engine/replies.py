"""Answers in the making: what the driver feeds, and what goes to the client."""

import asyncio
from collections.abc import Sequence

from servelab.engine import chunks
from servelab.engine.protocol import Call
from servelab.engine.sequences import Finish
from servelab.engine.vocabulary import Answer


class Choice:
    """One sequence of a request."""

    __slots__ = ("answer", "chunks", "echo", "ended", "finished", "pending", "reply", "sent")

    def __init__(self, reply: "Reply", answer: Answer, echo: str) -> None:
        self.reply = reply
        self.answer = answer
        self.echo = echo
        self.chunks: chunks.ChoiceChunks | None = None
        self.pending = 0
        self.sent = 0
        self.finished: Finish | None = None
        self.ended = False

    def tokens(self, count: int) -> None:
        self.pending += count

    def finish(self, finish: Finish) -> None:
        self.finished = finish

    @property
    def text(self) -> str:
        """The whole answer."""
        return self.echo + self.answer.text(self.sent + self.pending)


class Reply:
    """A request's answer; ``done`` is set when all its choices have ended."""

    def __init__(self, head: chunks.Head, call: Call) -> None:
        self.head = head
        self.call = call
        self.choices: list[Choice] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def add(self, choices: Sequence[Choice]) -> None:
        """Take the choices, in order of index."""
        self.choices.extend(choices)

    def flush(self) -> None:
        """Nothing is sent before the end."""
        self._end_if_finished()

    def _end_if_finished(self) -> bool:
        if any(choice.finished is None for choice in self.choices):
            return False
        if not self.done.done():
            self.done.set_result(None)
        return True

    @property
    def usage(self) -> dict[str, int]:
        """Token counts so far; a prompt counts once, however many choices it has."""
        prompt = sum(prompt.tokens for prompt in self.call.prompts)
        return chunks.usage(prompt, sum(choice.sent + choice.pending for choice in self.choices))

    def body(self) -> bytes:
        """The whole answer as JSON."""
        return chunks.whole(
            self.head,
            [
                (choice.text, choice.finished.reason)
                for choice in self.choices
                if choice.finished is not None
            ],
            self.usage,
        )


class StreamReply(Reply):
    """An answer sent as server-sent events, straight to the connection's transport."""

    def __init__(self, head: chunks.Head, call: Call) -> None:
        super().__init__(head, call)
        self._transport: asyncio.Transport | None = None
        self._chunked = True

    def add(self, choices: Sequence[Choice]) -> None:
        for index, choice in enumerate(choices):
            choice.chunks = chunks.ChoiceChunks(
                self.head, index, fingerprint=not self.call.include_usage
            )
        super().add(choices)

    def open(self, transport: asyncio.Transport, *, chunked: bool) -> None:
        """The headers are out: send what came meanwhile, and from now on at each flush."""
        self._transport = transport
        self._chunked = chunked
        self.flush()

    def flush(self) -> None:
        if self._transport is None:
            return
        parts: list[bytes] = []
        for choice in self.choices:
            if choice.pending or (choice.finished is not None and not choice.ended):
                self._collect(choice, parts)
        if self._end_if_finished():
            if self.call.include_usage:
                parts.append(chunks.usage_event(self.head, self.usage))
            parts.append(chunks.DONE)
        self._write(b"".join(parts))

    def _collect(self, choice: Choice, parts: list[bytes]) -> None:
        """The events of what is pending; the last token waits for the reason of the end."""
        events = choice.chunks
        assert events is not None
        first = choice.sent == 0
        count, choice.pending = choice.pending, 0
        pieces = choice.answer.pieces(choice.sent, count)
        if first and count:
            start = chunks.usage(self._prompt_tokens, 0) if self.call.continuous_usage else None
            parts.append(events.role(self._detailed(start)))
        if first and choice.echo and pieces:
            parts.append(events.token(choice.echo, None))
        ending = choice.finished if choice.finished is not None else None
        plain = pieces[:-1] if ending is not None and pieces else pieces
        if self.call.continuous_usage:
            for offset, piece in enumerate(plain, choice.sent + 1):
                parts.append(events.token(piece.decode("ascii"), self._usage_at(offset)))
        else:
            parts.append(events.tokens(plain))
        choice.sent += count
        if ending is not None:
            text = pieces[-1].decode("ascii") if pieces else ""
            counts = self._usage_at(choice.sent) if self.call.continuous_usage else None
            parts.append(events.last(text, ending.reason, counts))
            choice.ended = True

    @property
    def _prompt_tokens(self) -> int:
        return sum(prompt.tokens for prompt in self.call.prompts)

    def _usage_at(self, tokens: int) -> dict[str, int | None] | None:
        return self._detailed(chunks.usage(self._prompt_tokens, tokens))

    @staticmethod
    def _detailed(counts: dict[str, int] | None) -> dict[str, int | None] | None:
        return {**counts, "completion_tokens_details": None} if counts is not None else None

    def _write(self, data: bytes) -> None:
        transport = self._transport
        if not data or transport is None or transport.is_closing():
            return
        if self._chunked:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        transport.write(data)
