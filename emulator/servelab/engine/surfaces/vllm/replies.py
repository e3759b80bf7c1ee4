"""Answers in OpenAI's shapes, with vLLM's fields: whole, and as server-sent events."""

from collections.abc import Sequence
from typing import Any

from mypy_extensions import mypyc_attr

from servelab.engine.calls import Call, Prompt
from servelab.engine.core.config import BLOCK_TOKENS
from servelab.engine.exchange import Response
from servelab.engine.replying import Choice, Reply, StreamedReply, WholeReply
from servelab.engine.surfaces import events
from servelab.engine.surfaces.vllm import chunks, scores, thinking, tools, wholes
from servelab.engine.text import encoding, thoughts


def reply(head: chunks.Head, call: Call) -> Reply:
    """The answer to a chat or a text completion."""
    return Stream(head, call) if call.stream else Whole(head, call)


@mypyc_attr(allow_interpreted_subclasses=True)
class Whole(WholeReply):
    """One JSON document."""

    def __init__(self, head: chunks.Head, call: Call) -> None:
        super().__init__(call)
        self.head = head

    def response(self) -> Response:
        return Response(body=self.body())

    def body(self) -> bytes:
        """The whole answer as JSON."""
        if len(self.choices) == 1 and (told := self._bare(self.choices[0])) is not None:
            return told
        counts = chunks.usage(self.prompt_tokens, self.completion_tokens, self._details())
        counts |= thinking.usage(self)
        return wholes.whole(self.head, [self.choice(each) for each in self.choices], counts)

    def _bare(self, choice: Choice) -> bytes | None:
        """The same, if nothing but a text was asked for."""
        call, finish = self.call, choice.finished
        more = call.return_token_ids or call.prompt_logprobs or call.tells_cached or call.echo
        more = more or call.prompt_text or call.weight_versions
        more = more or call.thinks is not None
        if more or finish is None or call.logprobs is not None or call.calling is not None:
            return None
        told = chunks.End(finish.reason, choice.stop_reason)
        completion_tokens = choice.sent + choice.pending
        return wholes.bare(self.head, choice.text, told, self.prompt_tokens, completion_tokens)

    def _details(self) -> dict[str, Any] | None:
        if not self.call.tells_cached:
            return None
        none = {"created_cache_tokens": None, "multimodal_tokens": None}
        return {"cached_tokens": self.cached_tokens} | none | created(self)

    def choice(self, choice: Choice) -> chunks.Piece:
        """All that is told of a choice."""
        call = self.call
        count = 0 if call.prompt_only else choice.sent + choice.pending
        tokens = made(call, choice, 0, count)
        text: str | None = "" if call.prompt_only else choice.text
        calls: list[dict[str, Any]] = []
        thought: str | None = None
        if call.thinks is not None:
            thought, text = thinking.split(choice)
        if call.calling is not None:
            text, calls = tools.message(self.head, call, choice, text or "")
        wanted = call.return_token_ids
        hide_echo = not call.echo or (wanted and not call.chat)
        return chunks.Piece(
            text if hide_echo else choice.prompt.text + (text or ""),
            end(choice, called=bool(calls)),
            logprobs=_logprobs(call, choice, tokens, whole=True),
            token_ids=[token for _, token in tokens] if wanted else None,
            prompt_token_ids=choice.prompt.encoded() if wanted else None,
            # Without a model nothing foretells a prompt: vLLM's own list holds no more then.
            prompt_logprobs=[None] if call.prompt_logprobs else None,
            prompt_text=_prompt_text(choice),
            weight_versions=_weight_versions(choice),
            calls=calls,
            thought=thought if call.thinks is not None and call.thinks.told else None,
        )


class Stream(StreamedReply):
    """Events, the texts of which are cut from prebuilt bytes where nothing else was asked for."""

    def __init__(self, head: chunks.Head, call: Call) -> None:
        super().__init__(call)
        self._head = head
        self._chunks: list[chunks.ChoiceChunks] = []
        self._calls: list[tools.Deltas] = []
        self._told: dict[int, int] = {}  # characters by choice, where thoughts come first
        self._asks_more = call.logprobs is not None or call.return_token_ids
        more = call.continuous_usage or call.echo or call.thinks is not None
        self._text_only = not (self._asks_more or more or call.calling is not None)
        self._plain = self._text_only and not (
            call.stop or call.stop_token_ids or call.weight_versions or call.stream_interval > 1
        )
        self._count = 1  # tokens of the event that is told

    def add(self, choices: Sequence[Choice]) -> None:
        first = len(self.choices)
        super().add(choices)
        for index in range(first, len(self.choices)):
            fingerprint = not self.call.include_usage
            self._chunks.append(chunks.ChoiceChunks(self._head, index, fingerprint=fingerprint))
            if self.call.calling is not None:
                self._calls.append(tools.Deltas(self._head, self.choices[index]))

    def begin(self, parts: list[bytes]) -> None:
        for choice, choice_chunks in zip(self.choices, self._chunks, strict=True):
            told = chunks.Piece(
                None,
                usage=self._counts(choice),
                prompt_token_ids=choice.prompt.encoded() if self.call.return_token_ids else None,
                prompt_text=_prompt_text(choice),
            )
            parts.append(choice_chunks.role(told))
        if self.call.chat and self.call.echo:
            for choice, choice_chunks in zip(self.choices, self._chunks, strict=True):
                parts.append(choice_chunks.echo(choice.prompt.text, self._counts(choice)))

    def collect(self, parts: list[bytes]) -> None:
        if self.call.stream_interval > 1:
            self._collect_batches(parts)
            return
        if not self._plain or len(self.choices) != 1:
            super().collect(parts)
            return
        choice, choice_chunks = self.choices[0], self._chunks[0]
        count, choice.pending = choice.pending, 0
        if choice.finished is None:
            parts.append(choice_chunks.tokens(choice.answer.quoted(choice.sent, count)))
        elif not choice.ended:
            # The last token waits for the reason of the end.
            before = choice.answer.quoted(choice.sent, max(0, count - 1))
            parts.append(choice_chunks.tokens(before))
            last = choice.answer.pieces(choice.sent + len(before), min(1, count))
            text = b"".join(last).decode()
            told = chunks.End(choice.finished.reason, choice.stop_reason)
            parts.append(choice_chunks.last(text, told))
            choice.ended = True
        choice.sent += count

    def _collect_batches(self, parts: list[bytes]) -> None:
        """Pending tokens in batches: the first token alone, and the last ones however few."""
        for choice in self.choices:
            while count := self._due(choice):
                pieces = choice.answer.pieces(choice.sent, count)
                choice.sent += count
                choice.pending -= count
                choice.ended = choice.finished is not None and not choice.pending
                self._count = count
                self.take(choice, b"".join(pieces).decode(), parts)

    def _due(self, choice: Choice) -> int:
        batch = self.call.stream_interval if choice.sent else 1
        if choice.pending >= batch:
            return batch
        return choice.pending if choice.finished is not None else 0

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        choice_chunks, call = self._chunks[choice.index], self.call
        if self._text_only and not choice.ended:
            parts.append(choice_chunks.tokens([chunks.quoted(text)]))
            return
        thought: str | None = None
        if call.thinks is not None:
            thought, text = self._split(choice, text)
            thought = thought if call.thinks.told else ""
        told = self._calls[choice.index].after(text) if call.calling is not None else None
        if call.thinks is not None and not (thought or text or choice.ended or self._asks_more):
            return
        if told == [] and not thought and not choice.ended and not self._asks_more:
            return
        first = choice.sent == self._count
        tokens = made(call, choice, choice.sent - self._count, self._count)
        echo = first and call.echo and not call.chat
        if call.prompt_only:
            text, tokens = "", []
        piece = chunks.Piece(
            choice.prompt.text + text if echo and not call.return_token_ids else text,
            self._end(choice) if choice.ended else None,
            self._counts(choice),
            _logprobs(call, choice, tokens, whole=first),
            [token for _, token in tokens] if call.return_token_ids else None,
            choice.prompt.encoded() if first and (echo or call.return_token_ids) else None,
            weight_versions=_weight_versions(choice),
        )
        if told is not None:
            piece = piece._replace(text=None, calls=told)
        if call.thinks is not None:
            piece = piece._replace(hushed=not call.thinks.told)
        if thought:
            piece = piece._replace(text=text or None, calls=None, thought=thought)
        parts.append(choice_chunks.piece(piece))

    def _split(self, choice: Choice, text: str) -> tuple[str, str]:
        """What of the next part of a choice's text is thought, and what is said."""
        assert isinstance(choice.answer, thoughts.Thinking)
        before = self._told.get(choice.index, 0)
        self._told[choice.index] = before + len(text)
        return choice.answer.split(text, before)

    def finish(self, parts: list[bytes]) -> None:
        for choice, choice_chunks in zip(self.choices, self._chunks, strict=True):
            if not choice.ended:
                none = None if self.call.calling is None else ()
                piece = chunks.Piece("", self._end(choice), calls=none)
                piece = piece._replace(weight_versions=_weight_versions(choice))
                parts.append(choice_chunks.piece(piece))
                choice.ended = True
        if self.call.include_usage:
            details: dict[str, Any] | None = None
            if self.call.tells_cached:
                details = {"cached_tokens": self.cached_tokens}
                details |= created(self)
            counts = chunks.usage(self.prompt_tokens, self.completion_tokens, details)
            counts |= thinking.usage(self)
            parts.append(chunks.usage_event(self._head, counts))
        parts.append(events.DONE)

    def _end(self, choice: Choice) -> chunks.End | None:
        return end(choice, called=bool(self._calls) and self._calls[choice.index].begun)

    def _counts(self, choice: Choice) -> dict[str, Any] | None:
        """Of one choice and its prompt, if each event tells; only chat tells of no details."""
        if not self.call.continuous_usage:
            return None
        counts = chunks.usage(choice.prompt.tokens, choice.sent)
        return counts | {"completion_tokens_details": None} if self.call.chat else counts


def end(choice: Choice, *, called: bool = False) -> chunks.End | None:
    """Why a choice ended, once it has; ``called``: it has called a function."""
    if choice.finished is None:
        return None
    reason = tools.end_reason(choice.reply.call, choice.reason, called=called)
    return chunks.End(reason, choice.stop_reason)


def _prompt_text(choice: Choice) -> str | None:
    """The prompt as the chat template made it, if it is to be told."""
    return encoding.decode(choice.prompt.encoded()) if choice.reply.call.prompt_text else None


def _weight_versions(choice: Choice) -> list[dict[str, Any]] | None:
    """Which weights made which tokens, if that is to be told; there is one version only."""
    if not choice.reply.call.weight_versions:
        return None
    return [{"version": "default", "start": 0, "end": choice.sent + choice.pending}]


def created(reply: Reply) -> dict[str, Any]:
    """Prompt tokens that came into the prefix cache anew; only chat tells of them."""
    return {"created_cache_tokens": created_tokens(reply)} if reply.call.chat else {}


def created_tokens(reply: Reply) -> int:
    """Prompt tokens of full blocks that were computed and not found in the prefix cache."""
    return sum(
        max(0, choice.prompt.tokens // BLOCK_TOKENS * BLOCK_TOKENS - choice.cached_tokens)
        for choice in reply.choices[:: reply.call.n]
    )


def made(call: Call, choice: Choice, first: int, count: int) -> list[tuple[str, int]]:
    """Tokens of an answer as text and id; empty unless the client asked for more than text."""
    if call.logprobs is None and not call.return_token_ids:
        return []
    return [
        (piece.decode(), choice.answer.token(index))
        for index, piece in enumerate(choice.answer.pieces(first, count), first)
    ]


def _logprobs(
    call: Call, choice: Choice, made: Sequence[tuple[str, int]], *, whole: bool
) -> dict[str, Any] | None:
    top = call.logprobs
    if top is None:
        return None
    if call.chat:
        return scores.chat(made, top)
    echoed = whole and call.echo
    tokens = [*(_prompt_pieces(choice.prompt) if echoed else ()), *made]
    offset = choice.offset
    choice.offset += sum(len(text) for text, _ in tokens)
    return scores.completion(tokens, top, offset, first_unknown=echoed)


def _prompt_pieces(prompt: Prompt) -> list[tuple[str, int]]:
    """A prompt's tokens as text and id."""
    return [(encoding.decode([token]), token) for token in prompt.encoded()]
