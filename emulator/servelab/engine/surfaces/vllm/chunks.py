"""The bytes of a streamed answer's events with vLLM 0.33's fields, and what all answers tell."""

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from servelab.engine.surfaces import events

FINGERPRINT = "servelab"
_text = json.encoder.encode_basestring_ascii  # a text as JSON


class Head(NamedTuple):
    """What all parts of one answer share. ``created`` is Unix time in whole seconds."""

    id: str
    created: int
    model: str
    chat: bool
    role: str = "assistant"
    tools: str = ""  # the parser that looks for calls of functions

    def fields(self, *, stream: bool) -> dict[str, Any]:
        """The leading JSON fields."""
        if not self.chat:
            kind = "text_completion"
        else:
            kind = "chat.completion.chunk" if stream else "chat.completion"
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


class End(NamedTuple):
    """Why a choice ended: the reason, and the text or token id that stopped it."""

    reason: str
    stop_reason: str | int | None = None


class Piece(NamedTuple):
    """A part of a choice, or a whole one, with what the client asked to have beside the text.

    Where ``calls`` is not None, ``text`` may be None: a part then tells of calls alone.
    """

    text: str | None
    end: End | None = None
    usage: Mapping[str, Any] | None = None
    logprobs: Mapping[str, Any] | None = None
    token_ids: Sequence[int] | None = None
    prompt_token_ids: Sequence[int] | None = None
    prompt_logprobs: Sequence[None] | None = None
    prompt_text: str | None = None
    weight_versions: Sequence[Mapping[str, Any]] | None = None
    calls: Sequence[Mapping[str, Any]] | None = None
    thought: str | None = None
    hushed: bool = False  # it thought, and that is not told


NOTHING = Piece(None)


def usage(
    prompt_tokens: int, completion_tokens: int, details: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Token counts, and where prompt tokens came from if that is told."""
    counts: dict[str, Any] = {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
    }
    return counts | ({"prompt_tokens_details": details} if details else {})


_MARKED_TIME = 8_642_975_310_864_297_531  # no time that is ever told


class ChoiceEvents:
    """The events of one choice. ``fingerprint``: the last one carries it, not a usage event."""

    __slots__ = ("_fingerprint", "_head", "_index")

    def __init__(self, head: Head, index: int, *, fingerprint: bool) -> None:
        self._head = head
        self._index = index
        self._fingerprint = fingerprint

    def role(self, told: Piece = NOTHING) -> bytes:
        """The first event of a chat answer; empty for a text completion."""
        if not self._head.chat:
            return b""
        delta = {"role": self._head.role, "content": ""}
        choice = {"index": self._index, "delta": delta, "logprobs": None, "finish_reason": None}
        document = self._head.fields(stream=True) | {"choices": [choice]}
        document |= {"usage": dict(told.usage)} if told.usage else {}
        names = ("prompt_token_ids", "prompt_text")
        return event(document | {name: getattr(told, name) for name in names})

    def echo(self, text: str, usage: Mapping[str, Any] | None) -> bytes:
        """The event of a chat answer that repeats the message it goes on from."""
        choice = {"index": self._index, "delta": {"content": text}}
        choice |= {"logprobs": None, "finish_reason": None}
        document = self._head.fields(stream=True) | {"choices": [choice]}
        return event(document | ({"usage": dict(usage)} if usage else {}))

    def piece(self, piece: Piece) -> bytes:
        """One event with any text; the last one tells the reason of the end."""
        choice = self._chat(piece) if self._head.chat else self._text(piece)
        document = self._head.fields(stream=True) | {"choices": [choice]}
        document |= {"usage": dict(piece.usage)} if piece.usage else {}
        if piece.end is not None and self._fingerprint:
            document |= {"system_fingerprint": FINGERPRINT}
        return event(document | {"kv_transfer_params": None})

    def _chat(self, piece: Piece) -> dict[str, Any]:
        delta: dict[str, Any] = {"content": piece.text}
        if piece.calls is not None:
            delta = delta | {"tool_calls": piece.calls} if piece.calls else {}
        if piece.thought is not None:
            delta = {"reasoning": piece.thought} | ({} if piece.text is None else delta)
        elif piece.hushed and delta:
            delta = delta | {"reasoning": None}
        choice = {
            "index": self._index,
            "delta": delta,
            "logprobs": piece.logprobs,
            "finish_reason": piece.end and piece.end.reason,
            "token_ids": piece.token_ids,
        }
        if piece.end is not None:
            choice["stop_reason"] = piece.end.stop_reason
            choice["weight_versions"] = piece.weight_versions
        return choice

    def _text(self, piece: Piece) -> dict[str, Any]:
        return {
            "index": self._index,
            "text": piece.text,
            "logprobs": piece.logprobs,
            "finish_reason": piece.end and piece.end.reason,
            "stop_reason": piece.end and piece.end.stop_reason,
            "prompt_token_ids": piece.prompt_token_ids,
            "token_ids": piece.token_ids,
            "weight_versions": piece.weight_versions,
        }


class ChoiceChunks(ChoiceEvents):
    """The same, those that tell nothing but a text out of forms that are made once."""

    __slots__ = ("_between", "_forms", "_given", "_prefix", "_suffix")

    def __init__(self, head: Head, index: int, *, fingerprint: bool) -> None:
        super().__init__(head, index, fingerprint=fingerprint)
        self._forms = _forms(head.model, head.role, index, chat=head.chat, fingerprint=fingerprint)
        self._given = _text(head.id).encode(), b"%d" % head.created
        prefix, suffix = self._forms.token
        self._prefix, self._suffix = prefix % self._given, suffix
        self._between = suffix + self._prefix

    def role(self, told: Piece = NOTHING) -> bytes:
        if told != NOTHING or not self._head.chat:
            return super().role(told)
        return self._forms.role % self._given

    def tokens(self, pieces: Sequence[bytes]) -> bytes:
        """One event for each piece; pieces must need no escaping in JSON."""
        return self._prefix + self._between.join(pieces) + self._suffix if pieces else b""

    def last(self, text: str, end: End) -> bytes:
        """The event of the last token."""
        stop = b"null" if end.stop_reason is None else json.dumps(end.stop_reason).encode()
        told = _text(text).encode(), _text(end.reason).encode(), stop
        return self._forms.last % (*self._given, *told)


class Forms(NamedTuple):
    """Events with places for id and time of creation.

    ``token`` is what stands before and after a text, the quotation marks included; the last one has
    places for text, reason and what stopped it.
    """

    role: bytes
    token: tuple[bytes, bytes]
    last: bytes


@functools.lru_cache(maxsize=64)
def _forms(model: str, role: str, index: int, *, chat: bool, fingerprint: bool) -> Forms:
    mark = events.MARK
    head = Head(mark, _MARKED_TIME, model, chat, role)
    made = ChoiceEvents(head, index, fingerprint=fingerprint)
    before, _, after = _places(made.piece(Piece(mark))).rpartition(b"%b")
    last = made.piece(Piece(mark, End(mark, mark)))
    return Forms(_places(made.role()), (before + b'"', b'"' + after % ()), _places(last))


def _places(event: bytes) -> bytes:
    """An event with places where the marks stand."""
    marked = event.replace(b"%", b"%%").replace(_text(events.MARK).encode(), b"%b")
    return marked.replace(b"%d" % _MARKED_TIME, b"%b")


def event(document: Mapping[str, Any], name: str = "") -> bytes:
    """A server-sent event, with a name or without."""
    data = b"data: " + json.dumps(document, separators=(",", ":")).encode() + b"\n\n"
    return b"event: " + name.encode() + b"\n" + data if name else data


def quoted(text: str) -> bytes:
    """A text as it stands within a JSON string."""
    return json.dumps(text)[1:-1].encode()


def usage_event(head: Head, counts: Mapping[str, Any]) -> bytes:
    """The event after the last choice, if the client asked for usage."""
    document = head.fields(stream=True) | {"choices": [], "usage": dict(counts)}
    return event(document | {"system_fingerprint": FINGERPRINT})
