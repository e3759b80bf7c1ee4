"""Answers in the making: what the driver feeds, and what goes to the client."""

import asyncio
from collections.abc import Sequence
from typing import Any

from servelab.engine.core.sequences import Finish
from servelab.engine.surfaces.vllm import chunks, scores
from servelab.engine.surfaces.vllm.lengths import Ending
from servelab.engine.surfaces.vllm.protocol import Call, Prompt
from servelab.engine.text import vocabulary
from servelab.engine.text.vocabulary import Answer


class Choice:
    """One sequence of a request."""

    __slots__ = (
        "_emitted",
        "_held",
        "answer",
        "chunks",
        "ended",
        "ending",
        "finished",
        "offset",
        "pending",
        "prompt",
        "reply",
        "sent",
    )

    def __init__(self, reply: "Reply", answer: Answer, prompt: Prompt, ending: Ending) -> None:
        self.reply = reply
        self.answer = answer
        self.prompt = prompt
        self.ending = ending
        self.chunks: chunks.ChoiceChunks | None = None
        self.pending = 0
        self.sent = 0
        self.offset = 0  # characters of the tokens whose probabilities are told
        self.finished: Finish | None = None
        self.ended = False
        self._held = ""
        self._emitted = 0

    def tokens(self, count: int) -> None:
        self.pending += count

    def finish(self, finish: Finish) -> None:
        self.finished = finish

    @property
    def end(self) -> chunks.End | None:
        """Why it ended, once it has."""
        if self.finished is None:
            return None
        whole = self.finished.output_tokens == self.ending.tokens
        return chunks.End(self.finished.reason, self.ending.stop_reason if whole else None)

    @property
    def text(self) -> str:
        """The whole answer so far."""
        return self.answer.text(self.sent + self.pending)[: self.ending.characters]

    def delta(self, piece: str, hold: int, *, ended: bool) -> str:
        """What can be sent after one more token; ``hold`` characters may belong to a stop."""
        text = self._held + piece
        if not ended:
            keep = max(0, len(text) - hold)
        elif self.ending.characters is None:
            keep = len(text)
        else:
            keep = max(0, self.ending.characters - self._emitted)
        self._held = text[keep:]
        self._emitted += keep
        return text[:keep]


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
    def prompt_tokens(self) -> int:
        """A prompt counts once, however many choices it has."""
        return sum(prompt.tokens for prompt in self.call.prompts)

    @property
    def completion_tokens(self) -> int:
        """Of all choices so far."""
        return sum(choice.sent + choice.pending for choice in self.choices)

    @property
    def usage(self) -> dict[str, int]:
        """Token counts so far."""
        return chunks.usage(self.prompt_tokens, self.completion_tokens)

    def body(self) -> bytes:
        """The whole answer as JSON."""
        return chunks.whole(self.head, [self._whole(choice) for choice in self.choices], self.usage)

    def _whole(self, choice: Choice) -> chunks.Piece:
        call = self.call
        made = [] if call.prompt_only else self._made(choice, 0, choice.sent + choice.pending)
        text = "" if call.prompt_only else choice.text
        wanted = call.return_token_ids
        hide_echo = not call.echo or (wanted and not call.chat)
        return chunks.Piece(
            text if hide_echo else choice.prompt.text + text,
            choice.end,
            logprobs=self._logprobs(choice, made, whole=True),
            token_ids=[token for _, token in made] if wanted else None,
            prompt_token_ids=_prompt_ids(choice.prompt) if wanted else None,
            # Without a model nothing foretells a prompt: vLLM's own list holds no more then.
            prompt_logprobs=[None] if call.prompt_logprobs else None,
        )

    def _made(self, choice: Choice, first: int, count: int) -> list[tuple[str, int]]:
        """Tokens of an answer as text and id; empty unless the client asked for more than text."""
        if self.call.logprobs is None and not self.call.return_token_ids:
            return []
        return [
            (piece.decode("ascii"), choice.answer.token(index))
            for index, piece in enumerate(choice.answer.pieces(first, count), first)
        ]

    def _logprobs(
        self, choice: Choice, made: Sequence[tuple[str, int]], *, whole: bool
    ) -> dict[str, Any] | None:
        top = self.call.logprobs
        if top is None:
            return None
        if self.call.chat:
            return scores.chat(made, top)
        echoed = whole and self.call.echo
        tokens = [*(_prompt_pieces(choice.prompt) if echoed else ()), *made]
        offset = choice.offset
        choice.offset += sum(len(text) for text, _ in tokens)
        return scores.completion(tokens, top, offset, first_unknown=echoed)


def _prompt_ids(prompt: Prompt) -> list[int]:
    return list(prompt.ids) or vocabulary.encode(prompt.text)


def _prompt_pieces(prompt: Prompt) -> list[tuple[str, int]]:
    """A prompt's tokens as text and id."""
    ids = _prompt_ids(prompt)
    return [(vocabulary.decode([token]), token) for token in ids]


class StreamReply(Reply):
    """An answer sent as server-sent events, straight to the connection's transport."""

    def __init__(self, head: chunks.Head, call: Call) -> None:
        super().__init__(head, call)
        self._transport: asyncio.Transport | None = None
        self._chunked = True
        self._begun = False
        self._hold = (
            0 if call.include_stop else max((len(text) - 1 for text in call.stop), default=0)
        )
        # Events of text alone are cut from prebuilt bytes.
        self._text_only = not (
            call.logprobs is not None or call.return_token_ids or call.continuous_usage or call.echo
        )
        self._plain = self._text_only and not (call.stop or call.stop_token_ids)

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
        if not self._begun and any(c.pending or c.finished is not None for c in self.choices):
            self._begun = True
            self._begin(parts)
        # Choices that came together are told step by step, each in its turn.
        if self._plain and len(self.choices) == 1:
            self._collect(self.choices[0], parts)
        else:
            while ready := [choice for choice in self.choices if choice.pending]:
                for choice in ready:
                    self._take(choice, parts)
        if self._end_if_finished():
            self._finish(parts)
        self._write(b"".join(parts))

    def _begin(self, parts: list[bytes]) -> None:
        for choice in self.choices:
            assert choice.chunks is not None
            ids = _prompt_ids(choice.prompt) if self.call.return_token_ids else None
            counts = self._counts(choice) if self.call.continuous_usage else None
            parts.append(choice.chunks.role(counts, ids))
        for choice in self.choices if self.call.chat and self.call.echo else ():
            assert choice.chunks is not None
            counts = self._counts(choice) if self.call.continuous_usage else None
            parts.append(choice.chunks.echo(choice.prompt.text, counts))

    def _collect(self, choice: Choice, parts: list[bytes]) -> None:
        """The events of what is pending; the last token waits for the reason of the end."""
        assert choice.chunks is not None
        count, choice.pending = choice.pending, 0
        pieces = choice.answer.pieces(choice.sent, count)
        choice.sent += count
        if choice.finished is None:
            parts.append(choice.chunks.tokens(pieces))
        elif not choice.ended:
            parts.append(choice.chunks.tokens(pieces[:-1]))
            text = pieces[-1].decode("ascii") if pieces else ""
            parts.append(choice.chunks.piece(chunks.Piece(text, choice.end)))
            choice.ended = True

    def _take(self, choice: Choice, parts: list[bytes]) -> None:
        """One token, with all that was asked for."""
        piece = choice.answer.pieces(choice.sent, 1)[0].decode("ascii")
        choice.sent += 1
        choice.pending -= 1
        choice.ended = choice.finished is not None and not choice.pending
        self._tell(choice, choice.delta(piece, self._hold, ended=choice.ended), parts)

    def _tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        assert choice.chunks is not None
        if self._text_only and not choice.ended:
            parts.append(choice.chunks.tokens([text.encode("ascii")]))
            return
        call, first = self.call, choice.sent == 1
        made = self._made(choice, choice.sent - 1, 1)
        echo = first and call.echo and not call.chat
        if call.prompt_only:
            text, made = "", []
        piece = chunks.Piece(
            choice.prompt.text + text if echo and not call.return_token_ids else text,
            choice.end if choice.ended else None,
            self._counts(choice) if call.continuous_usage else None,
            self._logprobs(choice, made, whole=first),
            [token for _, token in made] if call.return_token_ids else None,
            _prompt_ids(choice.prompt) if first and (echo or call.return_token_ids) else None,
        )
        parts.append(choice.chunks.piece(piece))

    def _finish(self, parts: list[bytes]) -> None:
        for choice in self.choices:
            if not choice.ended:
                assert choice.chunks is not None
                parts.append(choice.chunks.piece(chunks.Piece("", choice.end)))
                choice.ended = True
        if self.call.include_usage:
            parts.append(chunks.usage_event(self.head, self.usage))
        parts.append(chunks.DONE)

    def _counts(self, choice: Choice) -> dict[str, int | None]:
        """Of one choice and its prompt; only chat tells that it has no details."""
        counts = chunks.usage(choice.prompt.tokens, choice.sent)
        return counts | {"completion_tokens_details": None} if self.call.chat else counts

    def _write(self, data: bytes) -> None:
        transport = self._transport
        if not data or transport is None or transport.is_closing():
            return
        if self._chunked:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        transport.write(data)
